// Runs the commands of all workspaces on this machine. Background processes run until their workspace is stopped.

import { closeSync } from "node:fs";
import type { ExecOptions, ExecOutput, ExecResult } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Stream } from "../../agent/core/stream.ts";
import { hasEnded, PROCESS_ID } from "../../lib/process-id.ts";
import { randomId } from "../../lib/random-id.ts";
import { assertExecutable, CANCELLED, followProcess } from "../process.ts";
import { cannotStart, killTree, LocalProcess, type Pipe, pipePool } from "./process.ts";
import { ensureFolders, stagingPath, type Workspace } from "./workspace.ts";

/** The maximum number of concurrent commands in one workspace. */
const MAX_RUNNING = 64;
/**
 * The maximum number of background processes in one workspace that keep their output open. Starting another one ends
 * the oldest.
 */
const MAX_BACKGROUND = 8;

/** The commands of one workspace. */
interface Commands {
  /** Includes commands that are about to start. */
  running: number;
  readonly foreground: Set<LocalProcess>;
  readonly background: Set<LocalProcess>;
}

export class LocalCommands {
  readonly #workspaces = new Map<string, Commands>();
  readonly #openPipe = pipePool();
  readonly #machine: string;
  /** True once a command has been started, so there may be processes to end. */
  #hasStarted = false;
  #isClosed = false;

  /** `machine` is the id of the server, which may consist of several processes. */
  constructor(machine: string) {
    this.#machine = machine;
  }

  isBusy(workspaceId: string): boolean {
    return (this.#workspaces.get(workspaceId)?.running ?? 0) > 0;
  }

  /** Implements `Backend.exec`. */
  async *exec(workspace: Workspace, command: string, options: ExecOptions): Stream<ExecResult, ExecOutput> {
    assertExecutable(command);
    if (options.signal.aborted) return CANCELLED;
    const commands = this.#enter(workspace);
    try {
      const running = await this.#start(workspace, command, options.environment);
      commands.foreground.add(running);
      try {
        return yield* followProcess(running, options);
      } finally {
        commands.foreground.delete(running);
        if (running.outcome === "held" && !running.ended)
          this.#moveToBackground(workspace.id, commands, running);
        else running.output.destroy();
      }
    } finally {
      commands.running--;
      this.#forgetIfIdle(workspace.id, commands);
    }
  }

  /** Ends all processes in a workspace that any process of this server started. */
  stop(workspaceId: string): Promise<void> {
    const commands = this.#workspaces.get(workspaceId);
    return endAll(commands ? [commands] : [], (mark) => {
      const [, id, machine] = mark.split("/");
      return id === workspaceId && machine === this.#machine;
    });
  }

  /** Ends processes that a crashed server left running in a workspace. */
  endOrphans(workspaceId: string): Promise<void> {
    return killTree({
      isMarked(mark) {
        const [life = "", id] = mark.split("/");
        return id === workspaceId && hasEnded(life);
      },
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#hasStarted)
      await endAll([...this.#workspaces.values()], (mark) => mark.startsWith(`${PROCESS_ID}/`));
  }

  async #start(
    workspace: Workspace,
    command: string,
    more: ExecOptions["environment"],
  ): Promise<LocalProcess> {
    const pipe = await this.#pipe(workspace);
    try {
      if (this.#isClosed) {
        closeSync(pipe.input);
        throw shuttingDown();
      }
      this.#hasStarted = true;
      const mark = `${PROCESS_ID}/${workspace.id}/${this.#machine}/${randomId()}`;
      const running = new LocalProcess(command, { workspace, mark, more }, pipe);
      await running.started();
      return running;
    } catch (error) {
      pipe.output.destroy();
      throw error;
    }
  }

  async #pipe(workspace: Workspace): Promise<Pipe> {
    try {
      await ensureFolders(workspace);
      return await this.#openPipe(() => stagingPath(workspace));
    } catch (error) {
      throw cannotStart(error);
    }
  }

  #moveToBackground(workspaceId: string, commands: Commands, running: LocalProcess): void {
    commands.background.add(running);
    running.output.unref().once("close", () => {
      commands.background.delete(running);
      this.#forgetIfIdle(workspaceId, commands);
    });
    const [oldest] = commands.background;
    if (oldest && commands.background.size > MAX_BACKGROUND)
      void killTree({ isMarked: (mark) => mark === oldest.mark }).finally(() => oldest.output.destroy());
  }

  #enter({ id }: Workspace): Commands {
    if (this.#isClosed) throw shuttingDown();
    const commands = this.#workspaces.get(id) ?? {
      running: 0,
      foreground: new Set(),
      background: new Set(),
    };
    if (commands.running >= MAX_RUNNING)
      throw new AppError(
        "unavailable",
        `${MAX_RUNNING} commands are running in this workspace. Wait for one to end.`,
      );
    commands.running++;
    this.#workspaces.set(id, commands);
    return commands;
  }

  #forgetIfIdle(workspaceId: string, { running, background }: Commands): void {
    if (running === 0 && background.size === 0) this.#workspaces.delete(workspaceId);
  }
}

async function endAll(all: readonly Commands[], isMarked: (mark: string) => boolean): Promise<void> {
  await Promise.all(all.flatMap(({ foreground }) => [...foreground].map((each) => each.end("cancelled"))));
  await killTree({ isMarked });
  for (const { background } of all) for (const each of background) each.output.destroy();
}

const shuttingDown = () =>
  new AppError("shutting_down", "The server is stopping and does not start commands.");
