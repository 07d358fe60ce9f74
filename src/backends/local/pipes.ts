// Named pipes for the output of commands. What Node gives a child by itself is a socket, and a script that
// writes to `/dev/stderr` fails on a socket; a pipe also keeps standard output and error in one order.

import { execFile } from "node:child_process";
import { constants, openSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import { isMissing } from "./failures.ts";
import { HAS_PROC } from "./platform.ts";

const run = promisify(execFile);

export interface Pipe {
  /** Ends when no process holds the other side any more. Destroyed by whoever opened the pipe. */
  readonly output: Socket;
  /** The side to give to a child. Closed by whoever opened the pipe, once the child has it. */
  readonly input: number;
}

export interface PipePool {
  /** `fresh` makes a path for a pipe, should one have to be made. */
  open(fresh: () => string): Promise<Pipe>;
}

/** A pipe that was read to its end is used again: nobody holds it. Keeps as many as were open at once. */
export function pipePool(): PipePool {
  const free: string[] = [];
  return {
    async open(fresh) {
      for (let path = free.pop(); path !== undefined; path = free.pop()) {
        try {
          return connect(path, free);
        } catch (error) {
          // Somebody has cleaned up.
          if (!isMissing(error)) throw error;
        }
      }
      const path = fresh();
      await run("mkfifo", ["-m", "600", path]);
      return connect(path, free);
    },
  };
}

function connect(path: string, free: string[]): Pipe {
  // Neither waits: the first because it is told not to, the second because the first is there.
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const output = new Socket({ fd: reader, readable: true, writable: false });
  output.on("error", () => output.destroy());
  output.once("close", () => {
    if (output.readableEnded) free.push(path);
    else unlink(path).catch(() => {});
  });
  try {
    const same = HAS_PROC ? `/proc/self/fd/${reader}` : path;
    return { output, input: openSync(same, constants.O_WRONLY) };
  } catch (error) {
    output.destroy();
    throw error;
  }
}
