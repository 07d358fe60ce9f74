// Tools that a tenant's own servers carry out: what is registered, what is kept, what the tenant gets to see of it,
// and the port to where it is kept.

import { z } from "zod";
import { globMatcher } from "../lib/glob.ts";
import { isHeaderSetByUs } from "./http-tool-headers.ts";
import type { ToolAnnotations } from "./tool.ts";

/** Of one tenant. */
export const MAX_HTTP_TOOLS = 100;
const MAX_HEADERS = 20;

/** What every other tool's name may be, too; models take nothing else. */
const Name = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 characters out of A-Z a-z 0-9 _ -")
  .refine((name) => !name.startsWith("mcp__"), "must not begin with mcp__");

const CallbackUrl = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.parse(text);
    return (url?.protocol === "http:" || url?.protocol === "https:") && url.username + url.password === "";
  }, "must be an http or https URL without a user and a password");

const HeaderName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be a header name")
  .refine((name) => !isHeaderSetByUs(name), "must not be a header that the call sets itself");
const HeaderValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e]*$/, "must be one line of ASCII");

const Glob = z
  .string()
  .min(1)
  .max(128)
  .refine((pattern) => {
    try {
      return Boolean(globMatcher(pattern));
    } catch {
      return false;
    }
  }, "must be a name or a pattern such as research-*");

export const HttpToolRegistration = z
  .strictObject({
    name: Name,
    description: z.string().min(1).max(8192).describe("The model reads it."),
    parameters: z
      .record(z.string(), z.unknown())
      .describe("JSON Schema (2020-12) of the arguments; `type` is `object`."),
    callback_url: CallbackUrl.describe("Where each call is POSTed to."),
    headers: z
      .record(HeaderName, HeaderValue)
      .refine((headers) => Object.keys(headers).length <= MAX_HEADERS, `must be at most ${MAX_HEADERS}`)
      .default({})
      .describe("Sent with each call; never shown again."),
    timeout_ms: z.int().min(1).max(600_000).default(30_000).describe("For one call, with all its tries."),
    idempotent: z
      .boolean()
      .default(false)
      .describe("A second execution with the same Idempotency-Key does no harm: the call may be repeated."),
    annotations: z
      .strictObject({
        read_only: z.boolean().optional(),
        destructive: z.boolean().optional(),
        category: z.enum(["read", "write", "execute", "network", "plan"]).optional(),
        requires_permission: z.boolean().optional(),
      })
      .default({}),
    agents: z.array(Glob).min(1).max(50).default(["*"]).describe("Whom it is for: names and patterns."),
  })
  .meta({ id: "HttpToolRegistration" });
export type HttpToolRegistration = z.infer<typeof HttpToolRegistration>;

/** A tool as it is kept. Its headers and its secret leave the server in calls only. */
export const HttpTool = HttpToolRegistration.extend({
  /** Signs the calls: `whsec_` and base64, as Standard Webhooks has it. */
  secret: z.string(),
  created_at: z.iso.datetime(),
});
export type HttpTool = z.infer<typeof HttpTool>;

/** A tool as its tenant sees it. */
export const HttpToolInfo = HttpToolRegistration.omit({ headers: true })
  .extend({
    callback_url: z.string().describe("Without its query."),
    header_names: z.array(z.string()),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "HttpTool" });
export type HttpToolInfo = z.infer<typeof HttpToolInfo>;

export function httpToolInfo({ headers, secret: _, ...tool }: HttpTool): HttpToolInfo {
  const { origin, pathname } = new URL(tool.callback_url);
  return { ...tool, callback_url: origin + pathname, header_names: Object.keys(headers).sort() };
}

/** What the reply to a registration says, once: the secret. */
export const RegisteredHttpTool = HttpToolInfo.extend({
  secret: z.string().describe("Verifies the signatures of calls. It is not shown again."),
}).meta({ id: "RegisteredHttpTool" });

export function annotationsOf({ annotations, idempotent }: HttpTool): ToolAnnotations {
  const { read_only = false, destructive, category = "network", requires_permission } = annotations;
  return {
    ...{ readOnly: read_only, idempotent, category },
    ...(destructive === undefined ? {} : { destructive }),
    ...(requires_permission === undefined ? {} : { requiresPermission: requires_permission }),
  };
}

/** Whether an agent may be given it, as far as its registration goes. */
export function isForAgent({ agents }: HttpTool, agent: string): boolean {
  return agents.some((pattern) => globMatcher(pattern)(agent));
}

/** The tools of each tenant. A tool belongs to the tenant, whoever of it registered it. */
export interface HttpToolStore {
  /** Replaces one of the same name. Throws `limit_exceeded` for a new one past `MAX_HTTP_TOOLS`. */
  put(tenant: string, tool: HttpTool): Promise<void>;
  get(tenant: string, name: string): Promise<HttpTool | undefined>;
  /** By name, in the order of its characters' codes. */
  list(tenant: string): Promise<HttpTool[]>;
  /** False when there is none. */
  delete(tenant: string, name: string): Promise<boolean>;
}
