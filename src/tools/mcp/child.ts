// The process of a server that speaks over its standard input and output, and everything it starts.
//
// It leads a process group of its own. A shell in that group holds the end of a pipe: when this process dies,
// however it dies, the pipe closes and the shell kills the group. What leaves the group is found by a mark in
// its environment when the server is ended here (where there is a /proc), and stays when this process dies.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { randomId } from "../../lib/random-id.ts";
import type { StdioServer } from "./options.ts";

const SCRIPT = `{ read -r _ <&3; kill -KILL 0; } </dev/null >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;
const MARK = "SKEIN_MCP";

/** How long each of the two requests to end, end of input and SIGTERM, may take to be followed. */
const GRACE_MS = 1000;
/** How long somebody outside the group may hold the output of a server that has ended. */
const DRAIN_MS = 500;

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export interface Child {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves once it has ended and the rest of its group is killed. */
  readonly exited: Promise<Exit>;
  /** Ends it with everything it started: asks first, closing its input. Resolves when it is gone. */
  end(): Promise<void>;
  /** The same at once, without asking. */
  kill(): Promise<void>;
}

/** Rejects when it cannot be started; a command that is not there starts, and exits with 127. */
export async function startChild({ command, args, env, cwd }: StdioServer): Promise<Child> {
  const mark = randomId();
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(
    "/bin/sh",
    ["-c", SCRIPT, "sh", command, ...args],
    {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...ordinary(), ...env, [MARK]: mark },
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    },
  );
  const { stdin, stdout, stderr } = child;
  const closed = once(child, "close");
  closed.catch(() => {});
  // Whoever reads sees the end; an error of a pipe says no more than that.
  for (const stream of child.stdio) stream?.on("error", () => {});
  // Once the leader has ended and the others are killed, the group's number may be another's.
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
    ...{ stdin, stdout, stderr, exited, kill },
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
    // It is gone.
  }
}

/** A process that forks while it is looked for may need several looks. */
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
