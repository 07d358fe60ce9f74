// A `Transport` of the SDK for a local server. Unlike the SDK's own transport, it starts the program with a minimal
// environment, limits the reading rate, and ends the program together with everything that the program started.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type JSONRPCMessage,
  parseJSONRPCMessage,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { randomId } from "../../../lib/random-id.ts";
import { firstChars } from "../../../lib/text.ts";
import type { StdioServer } from "./options.ts";
import { allowance, messageAllowance } from "./rate-limiter.ts";

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** The maximum number of bytes that were sent to a server but that the server has not read yet. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: <T extends JSONRPCMessage>(message: T) => void;
  /** Together with `pid`, this prevents the SDK from treating a silent server as failed. */
  readonly stderr = null;
  readonly pid = null;
  /** How the server ended. Undefined while the server is running. */
  exit: Exit | undefined;
  readonly #server: StdioServer;
  readonly #onLog: (line: string) => void;
  #child: Child | undefined;
  #logRead: Promise<void> | undefined;
  #isClosed = false;

  /** `onLog` receives each line of the server's standard error. */
  constructor(server: StdioServer, onLog: (line: string) => void) {
    this.#server = server;
    this.#onLog = onLog;
  }

  async start(): Promise<void> {
    const child = await startChild(this.#server);
    this.#child = child;
    if (this.#isClosed) return child.kill();
    this.#logRead = readLog(child, this.#onLog).catch((error) => this.#report(error));
    void this.#read(child);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (!stdin?.writable) throw new Error("It has ended.");
    if (stdin.writableLength > MAX_UNREAD_BYTES) {
      void this.kill();
      throw new Error("It does not read its input.");
    }
    stdin.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    await this.#child?.end();
    this.#close();
  }

  /** Ends the server without asking it first. */
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
    // Here, the server has closed its output, or its output can no longer be read.
    await child.end();
    this.exit = await child.exited;
    // The last lines of the server's log may explain why.
    await this.#logRead;
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

/** The maximum number of characters in one log line. */
const MAX_LOG_CHARS = 1000;
const LOG_BYTES_PER_SECOND = 1024 * 1024;
const LOG_LINES_AT_ONCE = 200;
const LOG_LINES_PER_SECOND = 20;

/** Reads the log, at most one MiB per second. Discards faster output. */
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

// The server's process leads a process group. A shell in that group keeps one end of a pipe open. When this
// process dies, the pipe closes and the shell kills the group. Processes that left the group have a mark in
// their environment. When Skein ends the server on a system with /proc, it finds these processes by their
// mark. When this process dies, they survive.
const SCRIPT = `{ read -r _ <&3; kill -KILL 0; } </dev/null >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;
const MARK = "SKEIN_MCP";

/**
 * The maximum time in ms that the server has to react to the end of its input, and the same time again to
 * react to SIGTERM.
 */
const GRACE_MS = 1000;
/** How long a process outside the group may keep the output of an ended server open, in ms. */
const DRAIN_MS = 500;

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export interface Child {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves once the server has ended and the rest of its group has been killed. */
  readonly exited: Promise<Exit>;
  /**
   * Closes the server's input, then ends the server and everything that it started. Resolves when the server
   * has ended.
   */
  end(): Promise<void>;
  /** Like `end`, but ends the server at once, without asking it to end first. */
  kill(): Promise<void>;
}

/**
 * Starts a server. Rejects if the shell cannot start. If the command is missing, the shell starts and exits
 * with 127.
 */
export async function startChild({ command, args, env, cwd }: StdioServer): Promise<Child> {
  const mark = randomId();
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(
    "/bin/sh",
    ["-c", SCRIPT, "sh", command, ...args],
    {
      cwd,
      env: { ...ordinary(), ...env, [MARK]: mark },
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    },
  );
  const { stdin, stdout, stderr } = child;
  const closed = once(child, "close");
  closed.catch(() => {});
  // The reader notices the end, so errors of pipes add no information.
  for (const stream of child.stdio) stream?.on("error", () => {});
  // Once the leader has ended and the rest of the group has been killed, the group's number may belong to
  // another group.
  let isOver = false;
  const signalGroup = (name: NodeJS.Signals) => {
    if (!isOver && child.pid !== undefined) signal(-child.pid, name);
  };
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => {
      signalGroup("SIGKILL");
      isOver = true;
      setTimeout(() => child.stdio.forEach((stream) => void stream?.destroy()), DRAIN_MS).unref();
      resolve({ code, signal });
    });
  });
  await once(child, "spawn");

  const within = (ms: number) => {
    const timer = new AbortController();
    return Promise.race([exited, sleep(ms, undefined, { signal: timer.signal }).catch(() => {})]).finally(
      () => timer.abort(),
    );
  };
  const kill = async () => {
    signalGroup("SIGKILL");
    await exited;
    await killMarked(mark);
    await closed;
  };
  return {
    stdin,
    stdout,
    stderr,
    exited,
    kill,
    async end() {
      stdin.end();
      if (!(await within(GRACE_MS))) signalGroup("SIGTERM");
      await within(GRACE_MS);
      await kill();
    },
  };
}

const ordinary = () => ({
  PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
  HOME: process.env.HOME ?? "/",
  LANG: process.env.LANG ?? "C.UTF-8",
});

function signal(target: number, name: NodeJS.Signals): void {
  try {
    process.kill(target, name);
  } catch {
    // The process has already ended.
  }
}

/** The maximum number of searches. A process that forks during a search may require several. */
const MAX_ROUNDS = 10;

async function killMarked(mark: string): Promise<void> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(pids.map((pid) => isMarked(pid, mark)));
    const strays = pids.filter((_, index) => found[index]).map(Number);
    if (strays.length === 0) return;
    for (const pid of strays) signal(pid, "SIGKILL");
  }
}

async function isMarked(pid: string, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  return environment.includes(`${MARK}=${mark}`);
}

const NEWLINE = 0x0a;

/**
 * Yields lines without their line endings and uses limited memory. Drops an unfinished last line. Throws an
 * error for a line that is too long.
 */
export async function* linesOf(bytes: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = chunk.subarray(start, end);
      if (size + line.length > maxBytes) throw tooLong(maxBytes);
      yield (size > 0 ? Buffer.concat([...held, line]) : line).toString("utf8");
      held = [];
      size = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    held.push(chunk.subarray(start));
    size += chunk.length - start;
    if (size > maxBytes) throw tooLong(maxBytes);
  }
}

const tooLong = (maxBytes: number) => new Error(`A message is longer than ${maxBytes} bytes.`);
