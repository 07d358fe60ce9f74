// HTTP tools, which a tenant's own servers execute. Defines the formats of a registration, of the stored tool, and of the
// tool as the tenant sees it.

import { randomBytes } from "node:crypto";
import { z } from "zod";
import { boundedMap } from "../../../lib/bounded-schemas.ts";
import { globMatcher } from "../../../lib/glob.ts";
import { HttpUrl } from "../../../lib/http-url.ts";
import { mergePatch } from "../../../lib/json.ts";
import { type Mask, maskOf } from "../../../lib/mask.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { loadSchemaEngine } from "../../../lib/untrusted-schema/index.ts";
import { AppError } from "../../core/errors.ts";
import type { ToolAnnotations } from "../../core/tool.ts";
import { usableParameters } from "../parameters.ts";

const MAX_HEADERS = 20;
/**
 * The maximum number of characters in all header values. Servers do not accept longer headers, and every text
 * from an endpoint is searched for all of these values.
 */
const MAX_HEADER_CHARS = 16_384;

/** The format is the same as for all other tools, because models accept no other format. */
const Name = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -")
  .refine((name) => !name.startsWith("mcp__"), "must not begin with mcp__");

/** Headers that a call sets by itself, for the connection, the message and the receiver's checks. */
const OWN_HEADERS: ReadonlySet<string> = new Set(
  (
    "connection keep-alive te trailer transfer-encoding upgrade expect host http2-settings via forwarded " +
    "content-length content-type content-encoding accept accept-encoding user-agent date idempotency-key"
  ).split(" "),
);
const OWN_PREFIXES = ["webhook-", "proxy-", "x-forwarded-"];

function isOwnHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return OWN_HEADERS.has(lower) || OWN_PREFIXES.some((prefix) => lower.startsWith(prefix));
}

const HeaderName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be a header name")
  .refine((name) => !isOwnHeader(name), "must not be a header that the call sets itself");
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
    description: z.string().min(1).max(8192).describe("Description for the model."),
    parameters: z
      .record(z.string(), z.unknown())
      .describe("JSON Schema (2020-12) for the arguments. `type` must be `object`."),
    callback_url: HttpUrl.describe("URL that receives each call as a POST request."),
    headers: boundedMap(HeaderName, HeaderValue, MAX_HEADERS)
      .default({})
      .describe("Headers to send with each call. Responses never contain them."),
    timeout_ms: z
      .int()
      .min(1)
      .max(600_000)
      .default(30_000)
      .describe("Timeout of one call in milliseconds, including retries."),
    idempotent: z
      .boolean()
      .default(false)
      .describe(
        "True if a repeated call with the same `Idempotency-Key` does no harm, so that Skein may retry it.",
      ),
    annotations: z
      .strictObject({
        read_only: z.boolean().optional(),
        destructive: z.boolean().optional(),
        category: z.enum(["read", "write", "execute", "network", "plan"]).optional(),
        requires_permission: z.boolean().optional(),
      })
      .describe(
        "Hints for agents' permissions. Unless the operator trusts tenants, only `destructive` and `requires_permission: true` have an effect.",
      )
      .default({}),
    agents: z
      .array(Glob)
      .min(1)
      .max(50)
      .default(["*"])
      .describe("Names and globs of agents that can use the tool."),
  })
  .meta({ id: "HttpToolRegistration" });
export type HttpToolRegistration = z.infer<typeof HttpToolRegistration>;

const { description, parameters, callback_url, timeout_ms, idempotent, annotations, agents } =
  HttpToolRegistration.shape;

/**
 * The fields of a tool that can change. The name and the secret that signs the tool's calls cannot change.
 */
export const HttpToolChange = z
  .strictObject({
    description: description.optional(),
    parameters: parameters.optional(),
    callback_url: callback_url.optional(),
    headers: boundedMap(HeaderName, HeaderValue.nullable(), MAX_HEADERS)
      .optional()
      .describe("Headers to merge into the tool's existing headers. `null` removes a header."),
    timeout_ms: timeout_ms.unwrap().optional(),
    idempotent: idempotent.unwrap().optional(),
    annotations: annotations.unwrap().optional(),
    agents: agents.unwrap().optional(),
  })
  .meta({ id: "HttpToolChange" });
export type HttpToolChange = z.infer<typeof HttpToolChange>;

/** A tool as stored. Its headers and its secret leave the server only in calls. */
export const HttpTool = HttpToolRegistration.extend({
  /** Signs the calls: `whsec_` and base64, as in Standard Webhooks. */
  secret: z.string(),
  /**
   * The previous secret, if the tool was registered again. Calls have signatures of both secrets until
   * `until`.
   */
  previous: z.object({ secret: z.string(), until: z.iso.datetime() }).optional(),
  created_at: z.iso.datetime(),
});
export type HttpTool = z.infer<typeof HttpTool>;

/** A tool as its tenant sees it. */
export const HttpToolInfo = HttpToolRegistration.omit({ headers: true })
  .extend({
    callback_url: z.string().describe("Callback URL without its query."),
    header_names: z.array(z.string()),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "HttpTool" });
export type HttpToolInfo = z.infer<typeof HttpToolInfo>;

export function httpToolInfo({ headers, secret: _, previous: __, ...tool }: HttpTool): HttpToolInfo {
  const { origin, pathname } = new URL(tool.callback_url);
  return { ...tool, callback_url: origin + pathname, header_names: Object.keys(headers).sort() };
}

/** The response to a registration, which contains the secret once. */
export const RegisteredHttpTool = HttpToolInfo.extend({
  secret: z.string().describe("Secret for verifying the signatures of calls. Returned only once."),
}).meta({ id: "RegisteredHttpTool" });

/**
 * Returns a tool's annotations. Unless tenants are trusted, their annotations can only make a tool's calls
 * stricter.
 */
export function annotationsOf({ annotations, idempotent }: HttpTool, isTrusted: boolean): ToolAnnotations {
  const { read_only = false, destructive, category = "network", requires_permission } = annotations;
  if (!isTrusted)
    return omitUndefined({
      readOnly: false,
      // A read-only call may be repeated, because repeating it affects only the tenant and its tool.
      idempotent: idempotent || read_only,
      category: "network" as const,
      destructive,
      requiresPermission: requires_permission || undefined,
    });
  return omitUndefined({
    readOnly: read_only,
    idempotent,
    category,
    destructive,
    requiresPermission: requires_permission,
  });
}

/**
 * How long a replaced secret still signs calls, in ms. During this time, the endpoint can receive the new
 * secret.
 */
const PREVIOUS_SECRET_MS = 24 * 3_600_000;

/**
 * Returns `tool` with the secret of `before` as its previous secret. Both secrets sign the tool's calls for
 * 24 hours.
 */
export function succeeding(tool: HttpTool, before: HttpTool, now: number): HttpTool {
  const until = new Date(now + PREVIOUS_SECRET_MS).toISOString();
  return { ...tool, previous: { secret: before.secret, until } };
}

/** Returns the secrets that currently sign a call, newest first. */
export function secretsOf({ secret, previous }: Pick<HttpTool, "secret" | "previous">): string[] {
  return previous && Date.parse(previous.until) > Date.now() ? [secret, previous.secret] : [secret];
}

/**
 * Masks data that the tool's endpoint must not repeat: the secrets in its headers and URL, and the secrets
 * that sign its calls.
 */
export function maskOfTool(tool: Pick<HttpTool, "headers" | "callback_url" | "secret" | "previous">): Mask {
  const { headers, callback_url } = tool;
  const secrets = secretsOf(tool).map((secret): [string, string] => ["secret", secret]);
  return maskOf([...Object.entries(headers), ...new URL(callback_url).searchParams, ...secrets]);
}

const SECRET_BYTES = 32;

export interface RegistrationChecks {
  /** True if a tool of the server has this name in any agent. */
  isTaken(name: string): boolean;
  /**
   * True if calls to this URL are refused, because its host has an address that is neither public nor
   * allowed.
   */
  isRefused(url: URL): Promise<boolean>;
}

/**
 * Creates a tool from a registration. Throws `already_exists` for a name that is in use. Throws
 * `invalid_request` for parameters that are not a JSON Schema of an object, and for an address that is
 * refused.
 */
export async function newHttpTool(
  registration: HttpToolRegistration,
  { isTaken, isRefused }: RegistrationChecks,
): Promise<HttpTool> {
  const { name, parameters, callback_url, headers } = registration;
  if (isTaken(name))
    throw new AppError("already_exists", `\`${name}\` is a tool of the server itself. Choose another name.`);
  if (parameters.type !== "object")
    throw new AppError("invalid_request", 'parameters: must be a JSON Schema with "type": "object".');
  const chars = Object.values(headers).join("").length;
  if (chars > MAX_HEADER_CHARS)
    throw new AppError(
      "invalid_request",
      `headers: the values have ${chars} characters in total; at most ${MAX_HEADER_CHARS} are allowed.`,
    );
  await checkSchema(parameters);
  const url = new URL(callback_url);
  if (await isRefused(url)) throw notCalled(url);
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
  return { ...registration, secret, created_at: new Date().toISOString() };
}

/**
 * Applies a change to a tool and keeps its secret. Throws the errors of `newHttpTool`, and `invalid_request`
 * for too many headers.
 */
export async function changedHttpTool(
  before: HttpTool,
  { headers, ...change }: HttpToolChange,
  checks: RegistrationChecks,
): Promise<HttpTool> {
  const { secret, previous, created_at, ...registration } = before;
  const merged = mergePatch(registration.headers, headers ?? {}) as HttpTool["headers"];
  if (Object.keys(merged).length > MAX_HEADERS)
    throw new AppError("invalid_request", `headers: at most ${MAX_HEADERS} are allowed.`);
  const made = await newHttpTool({ ...registration, ...omitUndefined(change), headers: merged }, checks);
  return { ...made, secret, created_at, ...omitUndefined({ previous }) };
}

/** Names only the host, because the rest of a URL may be secret. */
function notCalled({ host }: URL): AppError {
  return new AppError(
    "invalid_request",
    `callback_url: \`${host}\` has no public address, so it would never be called. Use a public address, or have the \
operator allow this one: HTTP_TOOLS_ALLOW, or http_tools.allow in the server's configuration.`,
  );
}

async function checkSchema(parameters: Record<string, unknown>): Promise<void> {
  const { compile } = await loadSchemaEngine();
  const usable = usableParameters(parameters);
  try {
    await compile("fault" in usable ? parameters : usable.schema);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new AppError("invalid_request", `parameters: the schema ${error.message}`);
  }
  if ("fault" in usable) throw new AppError("invalid_request", `parameters: they ${usable.fault}.`);
}
