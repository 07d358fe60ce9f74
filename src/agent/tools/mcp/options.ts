// The schema of `mcp_servers` in agents.yaml, with defaults, and with durations in milliseconds.

import { z } from "zod";
import { globMatcher } from "../../../lib/glob.ts";
import { Duration } from "../../../lib/units.ts";
import { messageOf } from "../../core/errors.ts";

const Interval = Duration.refine((ms) => ms > 0, "must be longer than 0 s");

const Glob = z
  .string()
  .min(1)
  .superRefine((text, context) => {
    try {
      globMatcher(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: `must be a glob: it ${messageOf(error)}` });
    }
  });

const common = {
  timeout: Interval.prefault("10m").describe("Maximum duration of one call."),
  idle_timeout: Interval.prefault("60s").describe(
    "Maximum time that a call can go without an answer or progress.",
  ),
  connect_timeout: Interval.prefault("60s").describe("Maximum time for the server to start and answer."),
  refresh: Interval.prefault("5m").describe(
    "Maximum age of the list of tools. If the list is older, Skein requests it again when the server is next used.",
  ),
  tools: z
    .strictObject({ include: z.array(Glob).min(1).default(["*"]), exclude: z.array(Glob).default([]) })
    .prefault({})
    .describe("Tools to offer: `include` and `exclude`, with globs of tool names without `mcp__<server>__`."),
  trust_annotations: z
    .boolean()
    .default(false)
    .describe(
      "Trusts the server's hints that a tool is read-only. Otherwise hints can only make permissions stricter.",
    ),
};

/** True if the text names one program. A path may contain spaces. */
const isOneProgram = (text: string) =>
  !/\s/.test(text.trim()) || /[/\\]/.test(text.trim().split(/\s/, 1)[0] ?? "");
const printable = (text: string) => !/[\0\r\n]/.test(text);
const Text = z.string().refine(printable, "must be one line");
const Unbroken = z.string().refine((text) => !text.includes("\0"), "must not contain a NUL character");

/** See RFC 6749, section 3.3. */
const OAuthScope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, "must be a scope without spaces");

const OAuth = z
  .strictObject({
    scopes: z
      .array(OAuthScope)
      .max(50)
      .default([])
      .describe("Scopes to request in addition to the MCP server's own."),
    issuer: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe("The only authorization server to use. Default: the first one that the MCP server names."),
    client_id: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe(
        "Skein's client id at the issuer. Default: Skein uses its metadata document or registers itself.",
      ),
    client_secret: z
      .string()
      .regex(/^[\x20-\x7e]{1,16384}$/, "must consist of printable ASCII characters")
      .optional()
      .describe("Client secret. Requires `client_id` and `issuer`, so no other server can receive it."),
  })
  .refine(
    ({ client_id, client_secret, issuer }) =>
      client_secret === undefined || (client_id !== undefined && issuer !== undefined),
    "`client_secret` needs `client_id` and `issuer`",
  );

export const HttpServer = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
      .refine(
        (url) => !/^[^/]*\/\/[^/?#]*@/.test(url),
        "must not contain a user name; use an Authorization header instead",
      )
      .describe("Address of a server that speaks streamable HTTP."),
    headers: z
      .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "must be the name of a header"), Text)
      .default({})
      .describe("Headers to send with every request. Skein never logs them."),
    per: z
      .enum(["user", "tenant"])
      .optional()
      .describe(
        "Owner of the account at the server: each user or each tenant connects a separate account. Default: all users share `headers`.",
      ),
    auth: z
      .strictObject({ oauth: OAuth.describe("How Skein connects accounts. `{}` suits most servers.") })
      .optional()
      .describe(
        "Lets people connect their accounts in a browser. Requires `per`. Default: applications store the credentials through the API.",
      ),
    ...common,
  })
  .refine(({ auth, per }) => auth === undefined || per !== undefined, {
    path: ["auth"],
    error: "needs `per: user` or `per: tenant`",
  });

export const StdioServer = z.strictObject({
  command: Unbroken.min(1)
    .refine(isOneProgram, "must be one program; put its arguments in `args`")
    .describe("Program that speaks MCP over stdio. It runs as Skein's own user."),
  args: z.array(Unbroken).default([]).describe("Arguments for the program."),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable"), Unbroken)
    .default({})
    .describe(
      "Environment variables for the program. Skein adds only `PATH`, `HOME`, `LANG` and `SKEIN_MCP`.",
    ),
  cwd: Unbroken.min(1).optional().describe("The program's working directory. Default: Skein's own."),
  ...common,
});

const ServerName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,31}$/,
    "must be 1 to 32 characters from a-z, 0-9 and -, and begin with a letter or a digit",
  );

const McpServer: z.ZodType<McpServerDefinition, z.input<typeof HttpServer> | z.input<typeof StdioServer>> =
  z.preprocess(
    (value, context) => {
      if (typeof value !== "object" || value === null || !("command" in value && "url" in value))
        return value;
      context.addIssue({ code: "custom", message: "must have `command` or `url`, not both" });
      return z.NEVER;
    },
    z.union([HttpServer, StdioServer]),
  );

/** The server definitions by name. */
export const McpServerDefinitions = z.record(ServerName, McpServer);
export type McpServerDefinitions = z.output<typeof McpServerDefinitions>;
export type HttpServer = z.output<typeof HttpServer>;
export type StdioServer = z.output<typeof StdioServer>;
export type McpServerDefinition = HttpServer | StdioServer;
