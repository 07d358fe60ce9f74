// One connection to a server: the SDK's client over a pipe or HTTP. Every failure is an `McpFailure`. Its message completes
// "The server …" for the model, and its cause is for the log. The SDK receives neither the tool list nor an output schema,
// so it never compiles a server's schemas or runs a server's regular expressions.

import {
  type CallToolResult,
  Client,
  type ClientOptions,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Transport,
} from "@modelcontextprotocol/client";
import { z } from "zod";
import { orAborted } from "../../../lib/async.ts";
import { causesOf } from "../../../lib/causes.ts";
import { firstChars } from "../../../lib/text.ts";
import type { JsonSchema } from "../../../lib/untrusted-schema/index.ts";
import { messageOf } from "../../core/errors.ts";
import { type CurrentCall, currentCall, httpTransport } from "./http.ts";
import type { HttpServer, McpServerDefinition, StdioServer } from "./options.ts";
import { type FailureKind, McpFailure } from "./reporting.ts";
import { StdioTransport } from "./stdio.ts";
import { visitIn } from "./visits.ts";

/** The maximum time for a server to report its protocol revision, in ms. */
const PROBE_MS = 5000;
/** The longest possible wait of a Node timer. Skein's own limits therefore always apply first. */
const NEVER_MS = 2 ** 31 - 1;
const MAX_PAGES = 100;

export interface ToolToCall {
  /** The server's name for the tool. */
  readonly name: string;
  readonly parameters: JsonSchema;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/**
 * `auto`: the client asks the server for its protocol revision. `legacy`: the client uses the older protocol,
 * in which servers cannot be asked.
 */
export type Era = "auto" | "legacy";

export interface CallOptions {
  readonly signal: AbortSignal;
  /** The W3C trace context to send with the call. */
  readonly traceparent?: string | undefined;
  readonly onProgress: (progress: Progress) => void;
}

export interface McpConnection {
  /** The era to try first when opening the next connection. */
  readonly era: Era;
  /** Yields the server's tools page by page, unvalidated. Yields at most a hundred pages. */
  tools(signal: AbortSignal): AsyncGenerator<readonly unknown[], void>;
  /** Rejects as soon as `signal` aborts, and notifies the server. */
  call(tool: ToolToCall, args: Record<string, unknown>, options: CallOptions): Promise<CallToolResult>;
  /** Resolves with true when the server sends any response, or with false if the connection ends first. */
  isAlive(): Promise<boolean>;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Returns how the connection ended, if known. The text completes "The server …". */
  end(): string | undefined;
  /** Asks the server to end, and then closes the connection. Ends a server that is a local program. */
  close(): Promise<void>;
  /** Like `close`, but ends the connection at once, without asking the server to end first. */
  kill(): Promise<void>;
  /** Closes the connection once its running calls have ended. */
  retire(): void;
}

export interface ConnectOptions {
  readonly version: string;
  readonly signal: AbortSignal;
  /** The era of an earlier connection. */
  readonly era: Era;
  onToolsChanged(): void;
  /** Called with each line that the server prints, or with a description of its fault. */
  onLog(line: string): void;
}

/** Negotiates the most recent protocol revision. The caller closes the connection. */
export async function connect(
  definition: McpServerDefinition,
  options: ConnectOptions,
): Promise<McpConnection> {
  const second = options.era === "legacy" ? "auto" : "legacy";
  try {
    return await open(definition, options, options.era);
  } catch (error) {
    // Some older servers fail when they are asked in the newer way. The server may also have been replaced
    // since the last connection.
    if (options.signal.aborted) throw error;
    return await open(definition, options, second);
  }
}

/** The transport of messages, and how it ended. */
interface Channel {
  readonly transport: Transport;
  close(): Promise<void>;
  kill(): Promise<void>;
  /** Returns how the channel ended, if known. */
  end(): string | undefined;
  /** The text of the failure if the server is not available at all. */
  readonly absent: string;
}

async function open(
  definition: McpServerDefinition,
  options: ConnectOptions,
  mode: Era,
): Promise<McpConnection> {
  const { signal, onLog } = options;
  const channel = "url" in definition ? overHttp(definition) : overPipe(definition, onLog);
  const client = clientFor(mode, options);
  const closed = new Promise<void>((resolve) => (client.onclose = resolve));
  client.onerror = (error) => onLog(firstChars(error.message, MAX_LOGGED));
  try {
    await orAborted(client.connect(channel.transport, { signal, timeout: NEVER_MS }), signal);
  } catch (error) {
    await channel.kill();
    throw explained(error, channel);
  }
  let calls = 0;
  let isRetired = false;
  const closeUnused = () => {
    if (isRetired && calls === 0) void channel.close();
  };
  return {
    era: client.getProtocolEra() === "modern" ? "auto" : "legacy",
    closed,
    end: () => channel.end(),
    close: () => channel.close(),
    kill: () => channel.kill(),
    retire() {
      isRetired = true;
      closeUnused();
    },

    tools: (signal) => toolPages(client, channel, signal),

    async call({ name, parameters }, args, { signal, traceparent, onProgress }) {
      const toolDefinition = { name, inputSchema: { ...parameters, type: "object" as const } };
      const how = { signal, onprogress: onProgress, toolDefinition, ...LONG };
      const current: CurrentCall = { signal, traceparent };
      calls++;
      try {
        const answer = currentCall.run(current, () =>
          client.callTool({ name, arguments: args, ...metaOf(traceparent) }, how),
        );
        return await told(answer, channel);
      } catch (error) {
        throw current.missingScopes ? lacking(current.missingScopes, error) : error;
      } finally {
        calls--;
        closeUnused();
      }
    },

    async isAlive() {
      const isModern = client.getProtocolEra() === "modern";
      try {
        await (isModern ? client.discover(LONG) : client.ping(LONG));
        return true;
      } catch (error) {
        return error instanceof ProtocolError;
      }
    },
  };
}

async function* toolPages(
  client: Client,
  channel: Channel,
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[], void, void> {
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const request = client.request({ method: "tools/list", params }, ToolPage, { signal, ...LONG });
    const { tools, nextCursor } = await told(request, channel);
    yield tools;
    if (nextCursor === undefined || nextCursor === cursor) return;
    cursor = nextCursor;
  }
}

const metaOf = (traceparent: string | undefined) =>
  traceparent === undefined ? {} : { _meta: { traceparent } };

const LONG = { timeout: NEVER_MS };
const MAX_LOGGED = 500;

/** A page's tools are validated one by one, so an invalid tool does not hide the others. */
const ToolPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

function clientFor(mode: Era, options: ConnectOptions): Client {
  const client = new Client({ name: "skein", version: options.version }, clientOptions(mode, options));
  // No user can be asked during a call.
  client.setRequestHandler("elicitation/create", () => ({ action: "decline" as const }));
  return client;
}

function clientOptions(mode: Era, { onToolsChanged }: ConnectOptions): ClientOptions {
  return {
    versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged } },
    inputRequired: { autoFulfill: false },
    // This capability makes a server send the address that its user must open.
    capabilities: { elicitation: { url: {} } },
  };
}

function overHttp(definition: HttpServer): Channel {
  const { transport, release } = httpTransport(definition);
  return {
    transport,
    close: () => release(true),
    kill: () => release(false),
    end: () => undefined,
    absent: "cannot be reached",
  };
}

function overPipe(definition: StdioServer, onLog: (line: string) => void): Channel {
  const transport = new StdioTransport(definition, onLog);
  return {
    transport,
    close: () => transport.close(),
    kill: () => transport.kill(),
    absent: "cannot be started",
    end() {
      if (!transport.exit) return undefined;
      const { code, signal } = transport.exit;
      if (code === 127) return "has no such command (exit code 127)";
      return `ended (${code === null ? `killed by ${signal}` : `exit code ${code}`})`;
    },
  };
}

function lacking(scopes: readonly string[], error: unknown): McpFailure {
  const failure = new McpFailure("insufficient", "requires more rights than the token has (HTTP 403)", error);
  failure.missingScopes = scopes;
  return failure;
}

async function told<T>(work: Promise<T>, channel: Channel): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw explained(error, channel);
  }
}

function explained(error: unknown, channel: Channel): McpFailure {
  const [kind, message] = reasonOf(error, channel);
  const failure = new McpFailure(kind, message, error);
  failure.visit = visitIn(error);
  return failure;
}

const MAX_REASON = 2000;

function reasonOf(error: unknown, channel: Channel): [FailureKind, string] {
  const causes = [...causesOf(error)];
  const status = causes.find((cause) => cause instanceof SdkHttpError)?.status;
  if (status !== undefined) return statusReason(status);
  if (error instanceof ProtocolError)
    return ["answered", `returned an error: ${firstChars(messageOf(error), MAX_REASON)}`];
  const end = channel.end();
  if (end !== undefined) return ["ended", end];
  if (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed)
    return ["ended", "ended the connection"];
  const code = causes
    .filter((cause) => !(cause instanceof SdkError))
    .flatMap((cause) => ("code" in cause && typeof cause.code === "string" ? [cause.code] : []))
    .at(-1);
  if (code !== undefined) return ["ended", `${channel.absent} (${code})`];
  return ["strange", "does not respond like an MCP server"];
}

function statusReason(status: number): [FailureKind, string] {
  if (status === 401) return ["unauthorized", "rejects the configured credentials (HTTP 401)"];
  if (status === 403) return ["answered", "rejects the configured credentials (HTTP 403)"];
  // A server that has lost a session returns 404, or in some cases 400. The call had no effect in either
  // case.
  if (status === 404 || status === 400) return ["forgotten", `rejects the request (HTTP ${status})`];
  return ["answered", `returned HTTP ${status}`];
}
