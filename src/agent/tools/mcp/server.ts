// One MCP server of this process and its tools, named `mcp__<server>__<tool>`.

import { setTimeout as sleep } from "node:timers/promises";
import { orAborted } from "../../../lib/async.ts";
import type { Logger } from "../../../lib/logger.ts";
import { type Mask, maskedError } from "../../../lib/mask.ts";
import { firstChars } from "../../../lib/text.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Connections } from "../../core/connections.ts";
import type { ToolCall } from "../../core/message.ts";
import { reportFailure } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { failed, type Run, type Tool, type ToolResult } from "../../core/tool.ts";
import { createCallQueue } from "./call-queue.ts";
import type { McpConnection, Progress } from "./connection.ts";
import { Link } from "./connection-lifecycle.ts";
import { resultOf } from "./content.ts";
import type { McpServerDefinition } from "./options.ts";
import { dismissed, type Log, logOf, McpFailure, maskOfServer } from "./reporting.ts";
import { type ListedTool, readListing } from "./tool-list.ts";
import { askToVisit, beforeCall } from "./visits.ts";

/** The minimum time between two listings of tools, in ms. */
const REST_MS = 500;

export interface McpServices {
  readonly logger: Logger;
  /** The version of Skein that is sent to servers. */
  readonly version: string;
  /** Returns the credentials for owners' servers, or undefined if Skein stores none. */
  readonly connections: () => Connections | undefined;
}

/**
 * Keeps the most recently listed tools. A call to an unavailable server returns an error result. Failures
 * never throw an error into a run.
 */
export class McpServer {
  readonly definition: McpServerDefinition;
  readonly #name: string;
  readonly #log: Log;
  readonly #mask: Mask;
  readonly #queue = createCallQueue();
  readonly #link: Link;
  readonly #closing = new AbortController();
  #tools: readonly Tool[] = [];
  #listedAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | undefined;
  #isOutdated = false;
  /** True once the server has listed its tools. */
  #isListed = false;
  #isRefused = false;

  /** Creates the server. It connects on first use. */
  constructor(name: string, definition: McpServerDefinition, { logger, version }: McpServices) {
    this.#name = name;
    this.definition = definition;
    this.#mask = maskOfServer(definition);
    this.#log = logOf(name, logger, this.#mask);
    const onToolsChanged = () => {
      this.#isOutdated = true;
      void this.#list();
    };
    this.#link = new Link({ definition, log: this.#log, version, queue: this.#queue, onToolsChanged });
  }

  /** True if the server refused the token of the last connection or listing. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  get #isOfOwner(): boolean {
    return "per" in this.definition && this.definition.per !== undefined;
  }

  /** Why the server is currently unusable. */
  get absence(): string | undefined {
    const isEmpty = this.#isListed && this.#tools.length === 0;
    const why = this.#link.failure ?? (isEmpty ? "lists no tools" : undefined);
    return why ? this.#mask(why) : this.#isListed ? undefined : "has not answered yet";
  }

  /**
   * Returns the most recently listed tools. Lists them again in the background if the listing is old or was
   * empty.
   */
  tools(): readonly Tool[] {
    const isEmpty = this.#isListed && this.#tools.length === 0;
    if (isEmpty || performance.now() - this.#listedAt > this.definition.refresh) void this.#list();
    return this.#tools;
  }

  /** Resolves when the server has listed its tools or failed to do so. */
  async listed(): Promise<void> {
    if (this.#listedAt === Number.NEGATIVE_INFINITY) await this.#list();
  }

  #list(): Promise<void> {
    this.#listing ??= this.#listAnew().finally(() => {
      this.#listing = undefined;
      if (this.#isOutdated && !this.#closing.signal.aborted) void this.#list();
    });
    return this.#listing;
  }

  /** Closes the server once its running calls have ended. The caller makes no new calls. */
  async retire(): Promise<void> {
    await this.#queue.over();
    await this.close();
  }

  /** Closes the server. Running calls end with an error result. */
  async close(): Promise<void> {
    this.#closing.abort(dismissed());
    await this.#link.close();
  }

  async #listAnew(): Promise<void> {
    const { connect_timeout, tools: choice, trust_annotations: isTrusted } = this.definition;
    const rest = this.#listedAt + REST_MS - performance.now();
    try {
      if (rest > 0) await sleep(rest, undefined, { signal: this.#closing.signal, ref: false });
      this.#isRefused = false;
      // The failure was already logged.
      const connection = await this.#link.connection(this.#closing.signal).catch((error: unknown) => {
        this.#isRefused = isUnauthorized(error);
        return undefined;
      });
      this.#isOutdated = false;
      if (!connection) return;
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(connect_timeout)]);
      const context = { server: this.#name, choice, isTrusted, mask: this.#mask };
      const { tools, leftOut } = await readListing(connection.tools(signal), context);
      this.#tools = tools.map((tool) => this.#tool(tool));
      this.#isListed = true;
      this.#log("debug", `lists ${tools.length} tools`);
      if (leftOut.length > 0) this.#log("warn", `lists tools that are left out: ${leftOut.join("; ")}`);
    } catch (error) {
      this.#isRefused = isUnauthorized(error);
      if (!this.#closing.signal.aborted) this.#log("warn", "cannot list its tools", causeOf(error));
    } finally {
      this.#listedAt = performance.now();
    }
  }

  #tool(listed: ListedTool): Tool {
    const { name, description, parameters, annotations } = listed;
    return {
      name,
      description,
      parameters,
      annotations,
      // The server validates the arguments. Its response explains a fault to the model.
      parse: (args) => ({ args }),
      // The cast is safe, because `args` always come from `parse`.
      execute: (args, call, run) => this.#execute(listed, args as Record<string, unknown>, call, run),
    };
  }

  async *#execute(
    tool: ListedTool,
    args: Record<string, unknown>,
    call: ToolCall,
    run: Run,
  ): Stream<ToolResult> {
    const context = { server: this.#name, mask: this.#mask, call, run };
    const answered = yield* beforeCall(context);
    if (answered) return answered;
    const limits = limitsOf(this.definition, AbortSignal.any([run.signal, this.#closing.signal]));
    try {
      const traceparent = run.traceparent?.(call.id);
      const question = { tool, args, limits, traceparent };
      return yield* showing(call, this.#mask, (show) => this.#ask({ ...question, show }, run));
    } catch (error) {
      run.signal.throwIfAborted();
      // The caller renews the owner's token, if possible.
      if (
        this.#isOfOwner &&
        (isUnauthorized(error) ||
          (missingScopesIn(error) && "auth" in this.definition && this.definition.auth))
      )
        throw error;
      if (error instanceof McpFailure && error.visit) return yield* askToVisit(context, error.visit);
      const known = this.#closing.signal.aborted ? this.#closing.signal.reason : error;
      reportFailure(run, {
        what: "tool",
        error: maskedError(known, this.#mask),
        tool: call.name,
        call_id: call.id,
        code: limits.passed() ? "timeout" : known instanceof McpFailure ? known.kind : "internal",
      });
      return failed(this.#inWords(known, limits));
    } finally {
      limits.end();
    }
  }

  async #ask(question: Question, run: Run): Promise<ToolResult> {
    const { signal } = question.limits;
    const endCall = await this.#queue.take(run.owner, signal);
    try {
      const connection = await this.#link.connection(signal);
      try {
        return await this.#send(question, connection);
      } catch (error) {
        if (!(error instanceof McpFailure) || error.kind !== "forgotten") throw error;
        // If the server still responds, it may have refused only this call.
        if (await orAborted(connection.isAlive(), signal)) throw error;
        await this.#link.replace(connection);
        return await this.#send(question, await this.#link.connection(signal));
      }
    } finally {
      endCall();
    }
  }

  async #send(
    { tool, args, limits, traceparent, show }: Question,
    connection: McpConnection,
  ): Promise<ToolResult> {
    const onProgress = (progress: Progress) => {
      limits.renew();
      show(progress);
    };
    limits.renew();
    try {
      const { original: name, parameters } = tool;
      const result = await connection.call({ name, parameters }, args, {
        signal: limits.signal,
        traceparent,
        onProgress,
      });
      return resultOf(result, this.#mask);
    } catch (error) {
      if (limits.signal.aborted) this.#link.examine(connection);
      if (!(error instanceof McpFailure) || error.kind !== "ended") throw error;
      throw new McpFailure("ended", `${error.message} during the call, so ${UNKNOWN}`, error);
    }
  }

  #inWords(error: unknown, limits: Limits): string {
    const passed = limits.passed();
    if (passed) return `MCP server \`${this.#name}\` ${passed}. The call was abandoned; ${UNKNOWN}.`;
    if (error instanceof McpFailure) return `MCP server \`${this.#name}\` ${this.#mask(error.message)}.`;
    return `MCP server \`${this.#name}\` could not be called.`;
  }
}

interface Question {
  readonly tool: ListedTool;
  readonly args: Record<string, unknown>;
  readonly limits: Limits;
  readonly traceparent: string | undefined;
  show(progress: Progress): void;
}

const causeOf = (error: unknown) => (error instanceof McpFailure ? (error.cause ?? error) : error);
const UNKNOWN = "its effect is unknown";

const MAX_LINE = 500;
/** The maximum number of progress updates per call to show. Further updates only renew the time limit. */
const MAX_SHOWN = 1000;

/** The time limits of a call. */
interface Limits {
  /** Aborts when the run aborts or a limit has passed. */
  readonly signal: AbortSignal;
  /** Returns which limit has passed. The text completes "It …". */
  passed(): string | undefined;
  /** Restarts the idle limit. The first call starts it. */
  renew(): void;
  /** Ends the call if it is still running. */
  end(): void;
}

function limitsOf(
  { timeout, idle_timeout }: { readonly timeout: number; readonly idle_timeout: number },
  run: AbortSignal,
): Limits {
  const expiry = new AbortController();
  let passed: string | undefined;
  const expire = (what: string) => {
    passed = what;
    expiry.abort(new Error("The call took too long."));
  };
  const total = setTimeout(() => expire(`did not end within ${timeout / 1000} s`), timeout);
  let idle: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([run, expiry.signal]),
    passed: () => passed,
    renew() {
      idle ??= setTimeout(() => expire(`sent nothing for ${idle_timeout / 1000} s`), idle_timeout);
      idle.refresh();
    },
    end() {
      clearTimeout(total);
      clearTimeout(idle);
      expiry.abort(new Error("The call has ended."));
    },
  };
}

/** Runs `work` and yields its progress as events. Merges progress that a slow reader has not taken yet. */
async function* showing<T>(
  call: ToolCall,
  mask: Mask,
  work: (show: (progress: Progress) => void) => Promise<T>,
): Stream<T> {
  let unread: string[] = [];
  let shown = 0;
  let wake = () => {};
  let isOver = false;
  const show = (progress: Progress) => {
    if (shown++ >= MAX_SHOWN) return;
    unread.push(lineOf(progress, mask));
    wake();
  };
  const working = work(show).finally(() => {
    isOver = true;
    wake();
  });
  // A reader that stops early does not wait for the call.
  working.catch(() => {});
  while (!isOver || unread.length > 0) {
    if (unread.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    const output = unread.join("");
    unread = [];
    if (output !== "") yield progressEvent(call, output);
  }
  return await working;
}

const progressEvent = (call: ToolCall, output: string): StreamEvent => ({
  event: "on_tool_progress",
  name: call.name,
  data: { call_id: call.id, output },
});

function lineOf({ progress, total, message }: Progress, mask: Mask): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`;
  return `${message ? `${count} ${firstChars(mask(message.toWellFormed()), MAX_LINE)}` : count}\n`;
}

/**
 * Returns the scopes that the token lacks, if the server refused a call because of them. The call had no
 * effect.
 */
export const missingScopesIn = (error: unknown) =>
  error instanceof McpFailure && error.kind === "insufficient" ? error.missingScopes : undefined;

/** True if the server refused the token. The request had no effect. */
export const isUnauthorized = (error: unknown) =>
  error instanceof McpFailure && error.kind === "unauthorized";
