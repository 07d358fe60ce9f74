// Channels to shells that are child processes of the test: like those of a container, without a container.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { HOME } from "../../src/sandbox/shell/prelude.ts";
import type { OpenChannel } from "../../src/sandbox/shell/session.ts";
import { needing } from "./needing.ts";
import { isNightly } from "./seed.ts";

/** Where a command is; empty where there is none. */
export const found = (command: string) =>
  spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).stdout.trim();

/** A shell by the command that starts it; each is a `/bin/sh` somewhere. */
export const SHELLS = {
  dash: ["dash"],
  busybox: ["busybox", "sh"],
  bash: ["bash", "--posix"],
} satisfies Record<string, readonly [string, ...string[]]>;

/** The shells of this run, by name. By day there is no bash: a script of the server that dash and busybox run is one for bash too. */
export const TRIED: readonly [name: string, command: readonly [string, ...string[]]][] = Object.entries(
  SHELLS,
).filter(([name]) => isNightly || name !== "bash");

/** Runs `tests` for each of them. */
export function describeShells(name: string, tests: (shell: readonly [string, ...string[]]) => void): void {
  for (const [shell, command] of TRIED)
    needing(found(shell), shell).describe(`${name} ${shell}`, () => tests(command));
}

export interface ChildShell {
  readonly shell: readonly [string, ...string[]];
  readonly cwd: string;
  /** The only place where commands are looked for. */
  readonly path?: string;
}

export function childShell({ shell: [file, ...args], cwd, path }: ChildShell): OpenChannel {
  return async (events) => {
    const env = { PATH: path ?? process.env.PATH ?? "/usr/bin:/bin", HOME: join(cwd, HOME) };
    const child = spawn(file, args, { cwd, env, detached: true, stdio: "pipe" });
    const streams = [child.stdin, child.stdout, child.stderr];
    let isClosed = false;
    const close = (error?: Error) => {
      if (isClosed) return;
      isClosed = true;
      for (const stream of streams) stream.destroy();
      events.onClose(error);
    };
    for (const stream of streams) stream.on("error", close);
    child.stdout.on("data", (bytes: Buffer) => isClosed || events.onOutput(bytes));
    child.stderr.on("data", (bytes: Buffer) => isClosed || events.onErrorOutput(bytes));
    child.on("error", close);
    child.on("close", () => close());
    await once(child, "spawn");
    return {
      write: (bytes) =>
        new Promise((resolve, reject) => {
          child.stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
        }),
      pause: () => void [child.stdout.pause(), child.stderr.pause()],
      resume: () => void [child.stdout.resume(), child.stderr.resume()],
      close: () => close(),
    };
  };
}
