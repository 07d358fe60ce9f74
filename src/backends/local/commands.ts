// The commands that run on this machine, of all workspaces. What they leave in the background goes on until
// its workspace is stopped.

import { execFile } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { promisify } from "node:util";
import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import { isOver, LIFE } from "../../lib/life.ts";
import { randomId } from "../../lib/random-id.ts";
import { refuseUnusable } from "../paths.ts";
import { cannotStart, follow, killTree, LocalProcess, type Pipe } from "./process.ts";
import { ensureFolders, HAS_PROC, isMissing, stagingPath, type Workspace } from "./workspace.ts";

/** At once, in one workspace. */
const MAX_RUNNING = 64;
/** What holds its output open in the background, in one workspace. The oldest is ended for a newer one. */
const MAX_BACKGROUND = 8;
/** Between two reads of what is printed in the background. */
const SIP_MS = 10;
const MAX_TIMER_MS = 2 ** 31 - 1;

interface Jobs {
  /** Counted from before they start. */
  running: number;
  readonly foreground: Set<LocalProcess>;
  readonly background: Set<LocalProcess>;
}

export class Commands {
  readonly #jobs = new Map<string, Jobs>();
  readonly #pipes = pipePool();
  #isClosed = false;

  isBusy(workspaceId: string): boolean {
    return (this.#jobs.get(workspaceId)?.running ?? 0) > 0;
  }

  /** As `Backend.exec`. */
  async *run(workspace: Workspace, command: string, options: ExecOptions): Stream<ExecResult, ExecOutput> {
    refuseUnusable(command);
    if (options.signal.aborted) return { output: "", omitted: 0, exitCode: null, ended: "cancelled" };
    const jobs = this.#enter(workspace);
    try {
      return yield* this.#execute(jobs, workspace, command, options);
    } finally {
      jobs.running--;
      this.#tidy(workspace.id, jobs);
    }
  }

  /** Ends what runs in a workspace, in the foreground and in the background. */
  stop(workspaceId: string): Promise<void> {
    const jobs = this.#jobs.get(workspaceId);
    return endAll(jobs ? [jobs] : [], (mark) => mark.startsWith(`${LIFE}/${workspaceId}/`));
  }

  /** Ends what a server that died has left running in a workspace. */
  endOrphans(workspaceId: string): Promise<void> {
    return killTree({
      isMarked(mark) {
        const [life = "", id] = mark.split("/");
        return id === workspaceId && isOver(life);
      },
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return endAll([...this.#jobs.values()], (mark) => mark.startsWith(`${LIFE}/`));
  }

  async *#execute(jobs: Jobs, workspace: Workspace, command: string, { signal, timeoutMs }: ExecOptions) {
    const process = await this.#start(workspace, command);
    jobs.foreground.add(process);
    const timer = setTimeout(() => void process.end("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
    const onAbort = () => void process.end("cancelled");
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return yield* follow(process);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // Has an effect only when the consumer left before the command was through.
      await process.end("cancelled");
      jobs.foreground.delete(process);
      if (process.isSilent || process.ended) process.output.destroy();
      else this.#leaveInBackground(workspace.id, jobs, process);
    }
  }

  async #start(workspace: Workspace, command: string): Promise<LocalProcess> {
    const pipe = await this.#openPipe(workspace);
    try {
      const process = this.#spawn(workspace, command, pipe);
      await process.started();
      return process;
    } catch (error) {
      pipe.output.destroy();
      throw error;
    }
  }

  async #openPipe(workspace: Workspace): Promise<Pipe> {
    try {
      await ensureFolders(workspace);
      return await this.#pipes.open(() => stagingPath(workspace));
    } catch (error) {
      throw cannotStart(error);
    }
  }

  #spawn(workspace: Workspace, command: string, pipe: Pipe): LocalProcess {
    if (!this.#isClosed)
      return new LocalProcess(command, workspace.root, `${LIFE}/${workspace.id}/${randomId()}`, pipe);
    closeSync(pipe.input);
    throw shuttingDown();
  }

  /** Its output is read on and forgotten, so that it is not held up, but too slowly to keep the server busy. */
  #leaveInBackground(workspaceId: string, jobs: Jobs, process: LocalProcess): void {
    const { output } = process;
    jobs.background.add(process);
    output.once("close", () => {
      jobs.background.delete(process);
      this.#tidy(workspaceId, jobs);
    });
    output.removeAllListeners("readable").unref();
    output.on("readable", () => setTimeout(() => output.read(), SIP_MS).unref());
    output.read();
    const [oldest] = jobs.background;
    if (oldest && jobs.background.size > MAX_BACKGROUND)
      void killTree({ isMarked: (mark) => mark === oldest.mark }).finally(() => oldest.output.destroy());
  }

  #enter({ id }: Workspace): Jobs {
    if (this.#isClosed) throw shuttingDown();
    const jobs = this.#jobs.get(id) ?? { running: 0, foreground: new Set(), background: new Set() };
    if (jobs.running >= MAX_RUNNING)
      throw new AppError(
        "unavailable",
        `${MAX_RUNNING} commands run in this workspace. Wait for one to end.`,
      );
    jobs.running++;
    this.#jobs.set(id, jobs);
    return jobs;
  }

  #tidy(workspaceId: string, { running, background }: Jobs): void {
    if (running === 0 && background.size === 0) this.#jobs.delete(workspaceId);
  }
}

async function endAll(all: readonly Jobs[], isMarked: (mark: string) => boolean): Promise<void> {
  await Promise.all(
    all.flatMap(({ foreground }) => [...foreground].map((process) => process.end("cancelled"))),
  );
  await killTree({ isMarked });
  for (const { background } of all) for (const process of background) process.output.destroy();
}

const shuttingDown = () => new AppError("shutting_down", "The server is stopping; no command is started.");

// Named pipes for the output of commands. What Node gives a child by itself is a socket, and a script that
// writes to `/dev/stderr` fails on a socket; a pipe also keeps standard output and error in one order.
const run = promisify(execFile);

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
