// The commands that run on this machine, of all workspaces. What they leave in the background goes on until
// its workspace is stopped.

import { closeSync } from "node:fs";
import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import { isOver, LIFE } from "../../lib/life.ts";
import { randomId } from "../../lib/random-id.ts";
import { refuseUnusable } from "../command-text.ts";
import { follow } from "./follow.ts";
import { cannotStart, Job } from "./job.ts";
import { endTree } from "./kill.ts";
import { type Pipe, pipePool } from "./pipes.ts";
import { ensureFolders, stagingPath, type Workspace } from "./workspace.ts";

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
  readonly foreground: Set<Job>;
  readonly background: Set<Job>;
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
    return endTree({
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
    const job = await this.#start(workspace, command);
    jobs.foreground.add(job);
    const timer = setTimeout(() => void job.end("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
    const onAbort = () => void job.end("cancelled");
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return yield* follow(job);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // Has an effect only when the consumer left before the command was through.
      await job.end("cancelled");
      jobs.foreground.delete(job);
      if (job.isSilent || job.ended) job.output.destroy();
      else this.#leaveInBackground(workspace.id, jobs, job);
    }
  }

  async #start(workspace: Workspace, command: string): Promise<Job> {
    const pipe = await this.#openPipe(workspace);
    try {
      const job = this.#spawn(workspace, command, pipe);
      await job.started();
      return job;
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

  #spawn(workspace: Workspace, command: string, pipe: Pipe): Job {
    if (!this.#isClosed)
      return new Job(command, workspace.root, `${LIFE}/${workspace.id}/${randomId()}`, pipe);
    closeSync(pipe.input);
    throw shuttingDown();
  }

  /** Its output is read on and forgotten, so that it is not held up, but too slowly to keep the server busy. */
  #leaveInBackground(workspaceId: string, jobs: Jobs, job: Job): void {
    const { output } = job;
    jobs.background.add(job);
    output.once("close", () => {
      jobs.background.delete(job);
      this.#tidy(workspaceId, jobs);
    });
    output.removeAllListeners("readable").unref();
    output.on("readable", () => setTimeout(() => output.read(), SIP_MS).unref());
    output.read();
    const [oldest] = jobs.background;
    if (oldest && jobs.background.size > MAX_BACKGROUND)
      void endTree({ isMarked: (mark) => mark === oldest.mark }).finally(() => oldest.output.destroy());
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
  await Promise.all(all.flatMap(({ foreground }) => [...foreground].map((job) => job.end("cancelled"))));
  await endTree({ isMarked });
  for (const { background } of all) for (const job of background) job.output.destroy();
}

const shuttingDown = () => new AppError("shutting_down", "The server is stopping; no command is started.");
