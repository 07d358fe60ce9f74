// One configured server and its tools. They stay what they were at the last listing, so that a server that is
// away is an error result and no missing tool. Nothing that it does throws into a run.

import { setTimeout as sleep } from "node:timers/promises";
import type { ToolCall } from "../../core/message.ts";
import { reportFailure } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { failed, type Run, type Tool, type ToolResult } from "../../core/tool.ts";
import { orAborted } from "../../lib/async.ts";
import type { Logger } from "../../lib/logger.ts";
import { type Limits, limitsOf, showing } from "./call.ts";
import type { Connection, Progress } from "./connection.ts";
import { resultOf } from "./content.ts";
import { dismissed, McpFailure } from "./failure.ts";
import { Link } from "./link.ts";
import { type ListedTool, readListing } from "./listing.ts";
import { type Log, logOf } from "./log.ts";
import type { McpServerDefinition } from "./options.ts";
import { type Mask, maskedError, maskOf } from "./secrets.ts";
import { createTurns } from "./turns.ts";

/** Between two listings, however often a server says that its tools are others. */
const REST_MS = 500;

export interface McpServices {
  readonly logger: Logger;
  /** Ours, as servers are told. */
  readonly version: string;
}

export class McpServer {
  readonly definition: McpServerDefinition;
  readonly #name: string;
  readonly #log: Log;
  readonly #mask: Mask;
  readonly #turns = createTurns();
  readonly #link: Link;
  readonly #closing = new AbortController();
  #tools: readonly Tool[] = [];
  #listedAt = Number.NEGATIVE_INFINITY;
  #listing: Promise<void> | undefined;
  #isOutdated = false;

  /** Does nothing before it is asked for. */
  constructor(name: string, definition: McpServerDefinition, { logger, version }: McpServices) {
    this.#name = name;
    this.definition = definition;
    this.#mask = maskOf(definition);
    this.#log = logOf(name, logger, this.#mask);
    const onToolsChanged = () => {
      this.#isOutdated = true;
      void this.#list();
    };
    this.#link = new Link({ definition, log: this.#log, version, turns: this.#turns, onToolsChanged });
  }

  /** As it listed them last; lists them again, for the next who asks, when that was long ago. */
  tools(): readonly Tool[] {
    if (performance.now() - this.#listedAt > this.definition.refresh) void this.#list();
    return this.#tools;
  }

  /** Resolves when its tools have been listed once, or could not be. */
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

  /** Calls under way end with an error result. */
  async close(): Promise<void> {
    this.#closing.abort(dismissed());
    await this.#link.close();
  }

  async #listAnew(): Promise<void> {
    const { connect_timeout, tools: choice } = this.definition;
    const rest = this.#listedAt + REST_MS - performance.now();
    try {
      if (rest > 0) await sleep(rest, undefined, { signal: this.#closing.signal, ref: false });
      // The link has said why when there is none.
      const connection = await this.#link.connection(this.#closing.signal).catch(() => undefined);
      this.#isOutdated = false;
      if (!connection) return;
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(connect_timeout)]);
      const context = { server: this.#name, choice, mask: this.#mask };
      const { tools, leftOut } = await readListing(connection.tools(signal), context);
      this.#tools = tools.map((tool) => this.#tool(tool));
      this.#log("debug", `lists ${tools.length} tools`);
      if (leftOut.length > 0) this.#log("warn", `lists what is left out: ${leftOut.join("; ")}`);
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#log("warn", "cannot list its tools", causeOf(error));
    } finally {
      this.#listedAt = performance.now();
    }
  }

  #tool(listed: ListedTool): Tool {
    const { name, description, parameters, annotations } = listed;
    return {
      ...{ name, description, parameters, annotations },
      // The server holds them against its own schema; the answer tells the model what is wrong.
      parse: (args) => ({ args }),
      // `parse` is the only source of `args`.
      execute: (args, call, run) => this.#execute(listed, args as Record<string, unknown>, call, run),
    };
  }

  async *#execute(
    tool: ListedTool,
    args: Record<string, unknown>,
    call: ToolCall,
    run: Run,
  ): Stream<ToolResult> {
    const limits = limitsOf(this.definition, AbortSignal.any([run.signal, this.#closing.signal]));
    try {
      return yield* showing(call, this.#mask, (show) => this.#ask({ tool, args, limits, show }, run));
    } catch (error) {
      run.signal.throwIfAborted();
      const known = this.#closing.signal.aborted ? this.#closing.signal.reason : error;
      reportFailure(run, {
        ...{ what: "tool", error: maskedError(known, this.#mask), tool: call.name, call_id: call.id },
        code: limits.passed() ? "timeout" : known instanceof McpFailure ? known.kind : "internal",
      });
      return failed(this.#inWords(known, limits));
    } finally {
      limits.end();
    }
  }

  async #ask(question: Question, run: Run): Promise<ToolResult> {
    const { signal } = question.limits;
    const endTurn = await this.#turns.take(run.owner, signal);
    try {
      const connection = await this.#link.connection(signal);
      try {
        return await this.#send(question, connection);
      } catch (error) {
        if (!(error instanceof McpFailure) || error.kind !== "forgotten") throw error;
        // It may have refused this call only.
        if (await orAborted(connection.isAlive(), signal)) throw error;
        await this.#link.replace(connection);
        return await this.#send(question, await this.#link.connection(signal));
      }
    } finally {
      endTurn();
    }
  }

  async #send({ tool, args, limits, show }: Question, connection: Connection): Promise<ToolResult> {
    const onProgress = (progress: Progress) => {
      limits.renew();
      show(progress);
    };
    limits.renew();
    try {
      const { original: name, parameters } = tool;
      const result = await connection.call({ name, parameters }, args, { signal: limits.signal, onProgress });
      return resultOf(result, this.#mask);
    } catch (error) {
      if (limits.signal.aborted) this.#link.examine(connection);
      if (!(error instanceof McpFailure) || error.kind !== "ended") throw error;
      throw new McpFailure("ended", `${error.message} during the call, so that ${UNKNOWN}`, error);
    }
  }

  #inWords(error: unknown, limits: Limits): string {
    const passed = limits.passed();
    if (passed) return `MCP server \`${this.#name}\` ${passed}. The call was given up; ${UNKNOWN}.`;
    if (error instanceof McpFailure) return `MCP server \`${this.#name}\` ${this.#mask(error.message)}.`;
    return `MCP server \`${this.#name}\` could not be asked.`;
  }
}

interface Question {
  readonly tool: ListedTool;
  readonly args: Record<string, unknown>;
  readonly limits: Limits;
  show(progress: Progress): void;
}

const causeOf = (error: unknown) => (error instanceof McpFailure ? (error.cause ?? error) : error);
const UNKNOWN = "what it has done is not known";
