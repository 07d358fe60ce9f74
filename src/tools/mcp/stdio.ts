// A server that is a program on this machine, as the SDK's `Transport`. Unlike the SDK's own it gives the
// program a minimal environment, reads it no faster than is fair, and ends it with everything it started.

import { setTimeout as sleep } from "node:timers/promises";
import {
  type JSONRPCMessage,
  parseJSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { firstChars } from "../../lib/text.ts";
import { allowance, messageAllowance } from "./allowance.ts";
import { type Child, type Exit, startChild } from "./child.ts";
import { linesOf } from "./lines.ts";
import type { StdioServer } from "./options.ts";

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Of what a server does not read of its input. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T) => void;
  /** Together with `pid`, how the SDK knows that silence is no outage here. */
  readonly stderr = null;
  readonly pid = null;
  /** How it ended; nothing while it runs. */
  exit: Exit | undefined;
  readonly #server: StdioServer;
  readonly #onLog: (line: string) => void;
  #child: Child | undefined;
  #isClosed = false;

  /** `onLog` gets what it prints on its standard error, a line at a time. */
  constructor(server: StdioServer, onLog: (line: string) => void) {
    this.#server = server;
    this.#onLog = onLog;
  }

  async start(): Promise<void> {
    const child = await startChild(this.#server);
    this.#child = child;
    if (this.#isClosed) return child.kill();
    readLog(child, this.#onLog).catch((error) => this.#report(error));
    void this.#read(child);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) throw new Error("It has ended.");
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      void this.kill();
      throw new Error("It does not read what it is sent.");
    }
    stdin.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    await this.#child?.end();
    this.#close();
  }

  /** Without asking it first. */
  async kill(): Promise<void> {
    await this.#child?.kill();
    this.#close();
  }

  async #read(child: Child): Promise<void> {
    const take = messageAllowance();
    try {
      for await (const line of linesOf(child.stdout, MAX_MESSAGE_BYTES)) {
        this.#receive(line);
        const wait = take(1, line.length);
        if (wait > 0) await sleep(wait, undefined, { ref: false });
      }
    } catch (error) {
      this.#report(error);
    }
    // It has closed its output, or nothing of what it says can be read any more.
    await child.end();
    this.exit = await child.exited;
    this.#close();
  }

  #receive(line: string): void {
    try {
      this.onmessage?.(parseJSONRPCMessage(JSON.parse(line)));
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onclose?.();
  }
}

/** Of one line. */
const MAX_LOG_CHARS = 1000;
const LOG_BYTES_PER_SECOND = 1024 * 1024;
const LOG_LINES_AT_ONCE = 200;
const LOG_LINES_PER_SECOND = 20;

/** What is printed faster is passed over, and read no faster than a megabyte a second. */
async function readLog({ stderr }: Child, onLog: (line: string) => void): Promise<void> {
  const takeBytes = allowance(LOG_BYTES_PER_SECOND, LOG_BYTES_PER_SECOND);
  const takeLines = allowance(LOG_LINES_AT_ONCE, LOG_LINES_PER_SECOND);
  let begun = "";
  let silentUntil = 0;
  for await (const text of stderr.setEncoding("utf8")) {
    const lines = (begun + text).split("\n");
    begun = firstChars(lines.pop() ?? "", MAX_LOG_CHARS);
    for (const line of lines) {
      if (line.trim() === "" || performance.now() < silentUntil) continue;
      onLog(firstChars(line, MAX_LOG_CHARS));
      silentUntil = performance.now() + takeLines(1);
    }
    const wait = takeBytes(text.length);
    if (wait > 0) await sleep(wait, undefined, { ref: false });
  }
}
