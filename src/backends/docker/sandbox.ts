// One user's sandbox: a container that is there when it is needed, and there again when it was lost.
//
// File operations are repeated after a loss, commands never: what they did is not known. (Longer than most files: its
// states are one machine, and can only be judged side by side.)

import { setTimeout as sleep } from "node:timers/promises";
import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import { orAborted } from "../../lib/async.ts";
import type { BackendState, Place } from "../definition.ts";
import type { Sandbox } from "../ledger.ts";
import type { Files } from "../shell/files.ts";
import { type Reply, SandboxLostError, type ScriptRunner, type ShellScript } from "../shell/script.ts";
import { ensureContainer } from "./container.ts";
import { execWatched } from "./disk.ts";
import { EngineError, toAppError } from "./engine.ts";
import type { Host } from "./host.ts";
import { diagnoseLoss, killAll, type OpenSandbox, openSandbox } from "./open-sandbox.ts";
import type { DockerOptions } from "./options.ts";
import { admit, withdraw } from "./reaper.ts";

const TRIES = 6;
/** After so many losses in one operation, all that runs in the sandbox is killed: something keeps killing us. */
const TRIES_BEFORE_RESET = 3;
/** The same after so many commands that were lost in a row, as with a fork bomb: none of them is repeated. */
const LOST_BEFORE_RESET = 2;
const FIRST_PAUSE_MS = 30;
const MAX_EXPLAIN_MS = 300;

export interface SandboxSettings {
  /** Throws `unavailable` while the engine is away. */
  readonly host: () => Promise<Host>;
  readonly sandbox: Sandbox;
  readonly options: DockerOptions;
  readonly onState: (state: BackendState) => void;
}

export class DockerSandbox implements ScriptRunner {
  readonly #settings: SandboxSettings;
  readonly #closing = new AbortController();
  #opening: Promise<OpenSandbox> | undefined;
  #opened: OpenSandbox | undefined;
  #movingIn: { containerId: string; leaving: AbortController } | undefined;
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
  isOf({ owner, name }: Place): boolean {
    const { sandbox } = this.#settings;
    return (
      sandbox.name === name && sandbox.owner.tenant === owner.tenant && sandbox.owner.user === owner.user
    );
  }
  get state(): BackendState {
    return this.#state;
  }
  /** Whether somebody waits for something that runs here. */
  get isBusy(): boolean {
    return this.#uses > 0;
  }
  /** Whether this process holds it open. */
  get isOpen(): boolean {
    return this.#opening !== undefined;
  }

  /** Whether it was used since this was asked last. */
  takeUse(): boolean {
    const wasUsed = this.#wasUsed || this.isBusy;
    this.#wasUsed = false;
    return wasUsed;
  }

  /** Resolves when it runs. Throws what is in the way. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#use(() => this.#open(signal));
  }

  /** The helper for its files, if there is one. */
  async helper(signal: AbortSignal): Promise<Files | undefined> {
    const { helper } = await this.#use(() => this.#open(signal));
    return helper.files;
  }

  async run(fragment: ShellScript, signal: AbortSignal): Promise<Reply> {
    return this.repeated((opened) => opened.shell.runOnce(fragment, signal), signal);
  }

  async runOnce(fragment: ShellScript, signal: AbortSignal): Promise<Reply> {
    return this.#use(async () => {
      const opened = await this.#open(signal);
      try {
        return await opened.shell.runOnce(fragment, signal);
      } catch (error) {
        if (error instanceof SandboxLostError) await this.#look(opened);
        throw error;
      }
    });
  }

  /** Does what may safely be done twice, again after each loss. Throws `backend_failed` when it is lost again and again. */
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

  /** Before something is written. Throws `backend_failed` when the workspace is full. */
  async assertRoom(signal: AbortSignal): Promise<void> {
    await this.repeated(({ diskWatch }) => diskWatch?.assertRoom(signal) ?? Promise.resolve(), signal);
  }

  /** As `Backend.exec`. */
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
          const result = yield* execWatched(opened, command, options);
          const isLost = result.ended === "sandbox-lost";
          const detail = isLost ? { detail: await this.#explain(opened) } : {};
          this.#lostInARow = isLost || result.ended === "output-lost" ? this.#lostInARow + 1 : 0;
          if (this.#lostInARow === LOST_BEFORE_RESET) await this.#reset(opened);
          return { ...result, ...detail };
        } catch (error) {
          // Thrown while nothing was started yet.
          await this.#afterLoss(error, opened, tried);
        }
      }
    } finally {
      this.#uses--;
      this.#wasUsed = true;
    }
  }

  /** What the engine tells of a container that may be ours. */
  onContainerEvent(containerId: string, action: string): void {
    const { leaving } = this.#movingIn?.containerId === containerId ? this.#movingIn : {};
    // An engine may never answer who wants a shell in a container that ends.
    if (action !== "oom") leaving?.abort(new SandboxLostError("its container ended"));
    const opened = this.#opened;
    if (opened?.containerId !== containerId) return;
    if (action === "oom") opened.shell.noteOom();
    else void this.#look(opened);
  }

  /** Lets go of it: what waits for it fails with `why`, and later use opens it again. The container is left as it is. */
  async detach(why: string): Promise<void> {
    await this.#opening?.catch(() => {});
    if (this.#opened) this.#drop(this.#opened, why);
  }

  /** Lets go of it for good. */
  async close(why: string): Promise<void> {
    this.#closing.abort(new AppError("unavailable", `The sandbox is not to be had: ${why}.`));
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

  /** All who ask meanwhile wait for the same; that one of them gives up does not end it. */
  #open(signal: AbortSignal): Promise<OpenSandbox> {
    this.#closing.signal.throwIfAborted();
    this.#opening ??= this.#begin().catch((error: unknown) => {
      this.#opening = undefined;
      this.#setState({ status: "error", error: messageOf(error) });
      throw error;
    });
    return orAborted(this.#opening, signal);
  }

  async #begin(): Promise<OpenSandbox> {
    const { sandbox } = this.#settings;
    const { signal } = this.#closing;
    this.#setState({ status: "starting" });
    try {
      const host = await this.#settings.host();
      await admit(host, sandbox, signal);
      const opened = await this.#raise(host).catch(async (error: unknown) => {
        await withdraw(host, sandbox.id).catch(() => {});
        throw error;
      });
      this.#opened = opened;
      this.#setState({ status: "running" });
      return opened;
    } catch (error) {
      if (error instanceof EngineError) throw toAppError(error);
      if (error instanceof SandboxLostError)
        throw new AppError("backend_failed", `No shell can be started in the sandbox: ${error.message}.`, {
          cause: error,
        });
      throw error;
    }
  }

  async #raise(host: Host): Promise<OpenSandbox> {
    const { sandbox, options } = this.#settings;
    const { signal } = this.#closing;
    const onSilence = () => this.#suspect();
    for (let tried = 1; ; tried++) {
      try {
        const containerId = await ensureContainer(host, { sandbox, options }, signal);
        const leaving = new AbortController();
        this.#movingIn = { containerId, leaving };
        const both = AbortSignal.any([signal, leaving.signal]);
        return await openSandbox(host, { sandbox, options, containerId, onSilence }, both);
      } catch (error) {
        // It went away between our looking at it and our moving in.
        if (!(error instanceof SandboxLostError) || tried === TRIES) throw error;
        await sleep(FIRST_PAUSE_MS * 2 ** tried, undefined, { signal });
      }
    }
  }

  #suspect(): void {
    if (this.#opened) void this.#look(this.#opened);
  }

  /** Resolves when it may be tried again. Throws what is no loss, and `backend_failed` when it was tried often enough. */
  async #afterLoss(error: unknown, opened: OpenSandbox, tried: number): Promise<void> {
    if (!(error instanceof SandboxLostError)) throw error;
    const why = await this.#look(opened);
    if (tried === TRIES)
      throw new AppError("backend_failed", `The sandbox was lost again and again: ${why}.`, { cause: error });
    if (tried === TRIES_BEFORE_RESET) await this.#reset(opened);
    await sleep(FIRST_PAUSE_MS * 2 ** tried, undefined, { signal: this.#closing.signal });
  }

  /** Its processes are killed before the engine calls a container stopped, so it is looked at more than once. */
  async #explain(opened: OpenSandbox): Promise<string> {
    for (let pause = FIRST_PAUSE_MS; pause < MAX_EXPLAIN_MS && opened.lost === undefined; pause *= 2) {
      await this.#look(opened);
      await sleep(pause);
    }
    return this.#look(opened);
  }

  /** Finds out why a shell went away, or keeps silent, and drops what is lost. Returns the reason in words. */
  async #look(opened: OpenSandbox): Promise<string> {
    if (opened.lost !== undefined) return opened.lost;
    const { host, containerId } = opened;
    const { why, isGone } = await diagnoseLoss(host.engine, containerId, LOOK);
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

  /** Ends all that runs in it, by force if it must be; files stay. */
  async #reset(opened: OpenSandbox): Promise<void> {
    const { sandbox } = this.#settings;
    const { host } = opened;
    this.#lostInARow = 0;
    if (opened.lost !== undefined) return;
    host.logger.warn({ sandbox: sandbox.id }, "resetting a sandbox whose shells are lost again and again");
    if (!(await killAll(opened, this.#closing.signal))) this.#drop(opened, "it was reset");
  }

  #setState(state: BackendState): void {
    if (this.#state.status === state.status && this.#state.error === state.error) return;
    this.#state = state;
    this.#settings.onState(state);
  }
}

/** A look has a deadline of its own, and is worth its while also when the server stops. */
const LOOK = new AbortController().signal;
const CANCELLED: ExecResult = { output: "", omitted: 0, exitCode: null, ended: "cancelled" };
