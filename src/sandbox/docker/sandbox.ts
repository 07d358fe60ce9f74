// One user's sandbox, which is a container that is opened on use and reopened after a loss.
//
// After a loss, file operations are retried. Commands are not, because their effect is unknown. (This file is
// longer than most, because its states form one state machine and can only be reviewed together.)

import { setTimeout as sleep } from "node:timers/promises";
import type { ExecOptions, ExecOutput, ExecResult } from "../../agent/core/backend.ts";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import type { Stream } from "../../agent/core/stream.ts";
import { orAborted } from "../../lib/async.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { BackendKey, BackendState } from "../definition.ts";
import { CANCELLED } from "../process.ts";
import type { Files } from "../shell/files.ts";
import { SandboxLostError, type ScriptReply, type ScriptRunner, type ShellScript } from "../shell/script.ts";
import { admit, withdraw } from "./admission.ts";
import { ensureContainer } from "./container.ts";
import { execWatched } from "./disk.ts";
import { toAppError } from "./engine-error.ts";
import type { Engines, UnplacedSandbox } from "./engines.ts";
import type { Host } from "./host.ts";
import { diagnoseLoss, killAll, type OpenSandbox, openSandbox } from "./open-sandbox.ts";
import type { DockerOptions } from "./options.ts";

const TRIES = 6;
/**
 * After this many losses in one operation, all processes in the sandbox are killed, because one of them keeps killing the
 * shells.
 */
const TRIES_BEFORE_RESET = 3;
/**
 * After this many lost commands in a row, all processes are killed, for example to end a fork bomb. Commands are not
 * retried.
 */
const LOST_BEFORE_RESET = 2;
const RETRY_BACKOFF = { base: 30 };
const EXPLAIN_TRIES = 4;

interface SandboxSettings {
  readonly engines: Engines;
  readonly sandbox: UnplacedSandbox;
  readonly options: DockerOptions;
  readonly onState: (state: BackendState) => void;
  readonly logger: Logger;
}

export class DockerSandbox implements ScriptRunner {
  readonly #settings: SandboxSettings;
  readonly #closing = new AbortController();
  #opening: Promise<OpenSandbox> | undefined;
  #opened: OpenSandbox | undefined;
  #containerOpening: { containerId: string; ending: AbortController } | undefined;
  #state: BackendState = { status: "stopped" };
  #uses = 0;
  #wasUsed = false;
  #lostInARow = 0;

  constructor(settings: SandboxSettings) {
    this.#settings = settings;
  }

  get options(): DockerOptions {
    return this.#settings.options;
  }
  isOf({ owner, name }: BackendKey): boolean {
    const { sandbox } = this.#settings;
    return (
      sandbox.name === name && sandbox.owner.tenant === owner.tenant && sandbox.owner.user === owner.user
    );
  }
  get state(): BackendState {
    return this.#state;
  }
  /** True if a caller is waiting for an operation in this sandbox. */
  get isBusy(): boolean {
    return this.#uses > 0;
  }
  /** True if this process has opened the sandbox. */
  get isOpen(): boolean {
    return this.#opening !== undefined;
  }

  /** Returns and clears the "used" flag. */
  takeUse(): boolean {
    const wasUsed = this.#wasUsed || this.isBusy;
    this.#wasUsed = false;
    return wasUsed;
  }

  /** Resolves when the sandbox is running. Throws the reason if it cannot run. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#use(() => this.#open(signal));
  }

  /** Returns the file helper, if one is running. */
  async helper(signal: AbortSignal): Promise<Files | undefined> {
    const { helper } = await this.#use(() => this.#open(signal));
    return helper.files;
  }

  async run(fragment: ShellScript, signal: AbortSignal): Promise<ScriptReply> {
    return this.repeated((opened) => opened.shell.runOnce(fragment, signal), signal);
  }

  async runOnce(fragment: ShellScript, signal: AbortSignal): Promise<ScriptReply> {
    return this.#use(async () => {
      const opened = await this.#open(signal);
      try {
        return await opened.shell.runOnce(fragment, signal);
      } catch (error) {
        if (error instanceof SandboxLostError) await this.#diagnose(opened);
        throw error;
      }
    });
  }

  /**
   * Runs `work` and repeats it after each loss, so it must be safe to repeat. Throws `backend_failed` after `TRIES`
   * losses.
   */
  async repeated<T>(work: (opened: OpenSandbox) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#use(async () => {
      for (let tried = 1; ; tried++) {
        const opened = await this.#open(signal);
        try {
          return await work(opened);
        } catch (error) {
          await this.#afterLoss(error, opened, tried);
        }
      }
    });
  }

  /** Throws `backend_failed` if the workspace is full. Call it before each write. */
  async assertRoom(signal: AbortSignal): Promise<void> {
    await this.repeated(({ diskWatch }) => diskWatch?.assertRoom(signal) ?? Promise.resolve(), signal);
  }

  /** Implements `Backend.exec`. */
  async *exec(command: string, options: ExecOptions): Stream<ExecResult, ExecOutput> {
    this.#uses++;
    try {
      if (options.signal.aborted) return CANCELLED;
      for (let tried = 1; ; tried++) {
        const opened = await this.#open(options.signal).catch((error: unknown) => {
          if (!options.signal.aborted) throw error;
        });
        if (!opened) return CANCELLED;
        try {
          const result = yield* execInside(opened, command, options);
          const isLost = result.ended === "sandbox-lost";
          const detail = isLost ? { detail: await this.#explain(opened) } : {};
          this.#lostInARow = isLost || result.ended === "output-lost" ? this.#lostInARow + 1 : 0;
          if (this.#lostInARow === LOST_BEFORE_RESET) await this.#reset(opened);
          return { ...result, ...detail };
        } catch (error) {
          // This error is thrown before any process has been started.
          await this.#afterLoss(error, opened, tried);
        }
      }
    } finally {
      this.#uses--;
      this.#wasUsed = true;
    }
  }

  /** Handles an event of a container that may belong to this sandbox. */
  onContainerEvent(containerId: string, action: string): void {
    const { ending } = this.#containerOpening?.containerId === containerId ? this.#containerOpening : {};
    // The engine may never answer a request for a shell in a container that is ending.
    if (action !== "oom") ending?.abort(new SandboxLostError("its container ended"));
    const opened = this.#opened;
    if (opened?.containerId !== containerId) return;
    if (action === "oom") opened.shell.noteOom();
    else void this.#diagnose(opened);
  }

  /**
   * Closes the sandbox. Waiting calls fail with `why`, and later use opens the sandbox again. The container keeps
   * running.
   */
  async detach(why: string): Promise<void> {
    await this.#opening?.catch(() => {});
    if (this.#opened) this.#drop(this.#opened, why);
  }

  /** Closes the sandbox permanently. */
  async close(why: string): Promise<void> {
    this.#closing.abort(new AppError("unavailable", `The sandbox is unavailable: ${why}.`));
    await this.detach(why);
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#uses++;
    try {
      return await work();
    } finally {
      this.#uses--;
      this.#wasUsed = true;
    }
  }

  /** Concurrent callers share one opening. The opening continues even if one of them aborts. */
  #open(signal: AbortSignal): Promise<OpenSandbox> {
    this.#closing.signal.throwIfAborted();
    this.#opening ??= this.#begin().catch((error: unknown) => {
      this.#opening = undefined;
      this.#setState({ status: "error", error: messageOf(error) });
      this.#logFailure(AppError.from(error));
      throw error;
    });
    return orAborted(this.#opening, signal);
  }

  /** Logs a failure here, because it does not belong to a particular run. All calls that need the sandbox fail. */
  #logFailure(err: AppError): void {
    const { sandbox, logger } = this.#settings;
    // A tenant that has reached its own limit gets the error itself, so nothing is logged.
    if (this.#closing.signal.aborted || err.code === "limit_exceeded") return;
    const { id, owner, name: backend } = sandbox;
    const image = err.details?.image;
    const what = image === undefined ? "a sandbox cannot be started" : "an image cannot be pulled";
    logger.warn({ sandbox: id, ...owner, backend, ...omitUndefined({ image }), code: err.code, err }, what);
  }

  async #begin(): Promise<OpenSandbox> {
    const { sandbox, engines } = this.#settings;
    const { signal } = this.#closing;
    this.#setState({ status: "starting" });
    try {
      const host = await admit(engines, sandbox, signal);
      const opened = await this.#openContainer(host).catch(async (error: unknown) => {
        await withdraw(host, sandbox.id).catch(() => {});
        throw error;
      });
      this.#opened = opened;
      this.#setState({ status: "running" });
      return opened;
    } catch (error) {
      if (!(error instanceof SandboxLostError)) throw toAppError(error);
      const message = `No shell can be started in the sandbox: ${error.message}.`;
      throw new AppError("backend_failed", message, { cause: error });
    }
  }

  async #openContainer(host: Host): Promise<OpenSandbox> {
    const { sandbox, options } = this.#settings;
    const { signal } = this.#closing;
    const onSilence = () => this.#onSilence();
    for (let tried = 1; ; tried++) {
      try {
        const containerId = await ensureContainer(host, { sandbox, options }, signal);
        const ending = new AbortController();
        this.#containerOpening = { containerId, ending };
        const both = AbortSignal.any([signal, ending.signal]);
        return await openSandbox(host, { sandbox, options, containerId, onSilence }, both);
      } catch (error) {
        // The container ended before it was opened.
        if (!(error instanceof SandboxLostError) || tried === TRIES) throw error;
        await sleep(backoff(tried, RETRY_BACKOFF), undefined, { signal });
      }
    }
  }

  #onSilence(): void {
    if (this.#opened) void this.#diagnose(this.#opened);
  }

  /** Resolves if the work may be retried. Throws errors other than a loss, and `backend_failed` after `TRIES` losses. */
  async #afterLoss(error: unknown, opened: OpenSandbox, tried: number): Promise<void> {
    if (!(error instanceof SandboxLostError)) throw error;
    const why = await this.#diagnose(opened);
    if (tried === TRIES)
      throw new AppError("backend_failed", `The sandbox was lost ${TRIES} times: ${why}.`, { cause: error });
    if (tried === TRIES_BEFORE_RESET) await this.#reset(opened);
    await sleep(backoff(tried, RETRY_BACKOFF), undefined, { signal: this.#closing.signal });
  }

  /**
   * Inspects the container more than once, because its processes die before the engine reports that it has
   * stopped.
   */
  async #explain(opened: OpenSandbox): Promise<string> {
    for (let attempt = 0; attempt < EXPLAIN_TRIES && opened.lost === undefined; attempt++) {
      await this.#diagnose(opened);
      await sleep(backoff(attempt, RETRY_BACKOFF));
    }
    return this.#diagnose(opened);
  }

  /** Finds out why a shell ended or does not answer, closes a lost sandbox, and returns the reason as text. */
  async #diagnose(opened: OpenSandbox): Promise<string> {
    if (opened.lost !== undefined) return opened.lost;
    const { host, containerId } = opened;
    const { why, isGone } = await diagnoseLoss(host.engine, containerId, NEVER);
    return isGone ? this.#drop(opened, why) : why;
  }

  #drop(opened: OpenSandbox, why: string): string {
    if (opened.lost !== undefined) return opened.lost;
    opened.lost = why;
    opened.close(new SandboxLostError(why));
    if (this.#opened === opened) {
      this.#opened = undefined;
      this.#opening = undefined;
      this.#setState({ status: "stopped" });
    }
    return why;
  }

  /** Kills all processes in the sandbox, by stopping the container if necessary. Keeps the files. */
  async #reset(opened: OpenSandbox): Promise<void> {
    const { sandbox } = this.#settings;
    const { host } = opened;
    this.#lostInARow = 0;
    if (opened.lost !== undefined) return;
    host.logger.warn({ sandbox: sandbox.id }, "resetting a sandbox that keeps losing its shells");
    if (!(await killAll(opened, this.#closing.signal))) this.#drop(opened, "it was reset");
  }

  #setState(state: BackendState): void {
    if (this.#state.status === state.status && this.#state.error === state.error) return;
    this.#state = state;
    this.#settings.onState(state);
  }
}

/** Runs a command, with its network if the sandbox may reach only some hosts. */
async function* execInside(
  opened: OpenSandbox,
  command: string,
  options: ExecOptions,
): Stream<ExecResult, ExecOutput> {
  const network = opened.egress?.enter(options.hosts ?? []);
  if (!network) return yield* execWatched(opened, command, options);
  try {
    const environment = { ...network.environment, ...options.environment };
    const result = yield* execWatched(opened, command, { ...options, environment });
    return network.refused.length === 0 ? result : { ...result, refused: network.refused };
  } finally {
    network.end();
  }
}

/**
 * Used for a diagnosis, which runs even while the server is stopping. The deadline of the engine's own calls limits the
 * diagnosis.
 */
const NEVER = new AbortController().signal;
