// The schema of `mcp_servers` in agents.yaml, with defaults filled in and durations in milliseconds.

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
  timeout: Interval.prefault("10m").describe("How long one call may take."),
  idle_timeout: Interval.prefault("60s").describe("How long a call may go without an answer or progress."),
  connect_timeout: Interval.prefault("60s").describe("How long the server may take to start and answer."),
  refresh: Interval.prefault("5m").describe("After that long its tools are listed again when they are used."),
  tools: z
    .strictObject({ include: z.array(Glob).min(1).default(["*"]), exclude: z.array(Glob).default([]) })
    .prefault({})
    .describe("Which of its tools are offered at all: globs of their names, without `mcp__<server>__`."),
  trust_annotations: z
    .boolean()
    .default(false)
    .describe(
      "Believes that a tool only reads because the server says so. Otherwise hints only make calls stricter.",
    ),
};

/** A path may have spaces in it. */
const isOneProgram = (text: string) =>
  !/\s/.test(text.trim()) || /[/\\]/.test(text.trim().split(/\s/, 1)[0] ?? "");
const printable = (text: string) => !/[\0\r\n]/.test(text);
const Text = z.string().refine(printable, "must be one line");
const Unbroken = z.string().refine((text) => !text.includes("\0"), "must not hold a NUL character");

export const HttpServer = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: "must be a URL that begins with http:// or https://" })
    .refine((url) => !/^[^/]*\/\/[^/?#]*@/.test(url), "must hold no user name: send an Authorization header")
    .describe("Where it speaks streamable HTTP."),
  headers: z
    .record(z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "must be the name of a header"), Text)
    .default({})
    .describe("Sent with every request. Never logged."),
  ...common,
});

export const StdioServer = z.strictObject({
  command: Unbroken.min(1)
    .refine(isOneProgram, "must be one program: put what follows it in `args`")
    .describe("The program that is the server; it runs as this process does."),
  args: z.array(Unbroken).default([]),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable"), Unbroken)
    .default({})
    .describe("Its environment. Besides this it sees PATH, HOME and LANG, and nothing else of the server's."),
  cwd: Unbroken.min(1).optional().describe("Default: the folder that the server runs in."),
  ...common,
});

const ServerName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9-]{0,31}$/,
    "must be 1 to 32 characters out of a-z 0-9 -, the first a letter or a digit",
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

/** By name. */
export const McpServerDefinitions = z.record(ServerName, McpServer);
export type McpServerDefinitions = z.output<typeof McpServerDefinitions>;
export type HttpServer = z.output<typeof HttpServer>;
export type StdioServer = z.output<typeof StdioServer>;
export type McpServerDefinition = HttpServer | StdioServer;
