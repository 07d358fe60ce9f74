// A handle on a thread and the agent that works on it: say something, watch, answer, stop. It holds nothing of the
// thread: several handles may be on the same one, in this process or in others.

import type { z } from "zod";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Answer, Interrupt } from "../core/interrupt.ts";
import type { Message } from "../core/message.ts";
import type { Phase } from "../core/phase.ts";
import type { Metadata, RunRecord, RunStatus, Thread } from "../core/records.ts";
import type { Input } from "./input.ts";
import type { RunResult } from "./result.ts";

export interface AgentHandle {
  /** The thread's id: what `runtime.get` takes. */
  readonly id: string;
  readonly agent: string;
  readonly owner: Owner;
  /**
   * How the newest run ends that was begun through this handle. A run that fails is a result; it rejects with what kept
   * the run from being accepted, and with `run_not_active` before anything was asked.
   */
  readonly result: Promise<RunResult>;
  /** The newest run begun through this handle, once it is accepted. */
  run(): Promise<RunRecord | undefined>;
  /** Of that run; `idle` before the first. */
  status(): Promise<RunStatus | "idle">;
  /** What it is at: calling the model, executing a tool … Nothing when it is not at work. */
  phase(): Promise<Phase | undefined>;
  /** What that run said after its first `after` events, then what it says, to its end. */
  events(after?: number): AsyncGenerator<StreamEvent, void, void>;
  /**
   * Calls `listener` with all that is said on the thread, from the beginning of the newest run on, until the function
   * that is returned is called. What a listener throws, or rejects with, is logged; it is not waited for.
   */
  subscribe(listener: (event: StreamEvent) => void): () => void;
  /** A message for the run that is at work, taken in before its next model call; where there is none, a new run. */
  send(input: Input): Promise<void>;
  /** What waits for an answer. */
  interrupts(): Promise<Interrupt[]>;
  /** Goes on with the interrupted run. Throws `interrupt_closed`, `invalid_request`, `run_not_active`. */
  answer(answers: readonly Answer[]): Promise<void>;
  /** The result of a call that the front end carries out: a text, or an error. As `answer`, otherwise. */
  submitToolResult(callId: string, result: string | { readonly error: string }): Promise<void>;
  /** Asks the run to stop after its current step. */
  interrupt(): Promise<void>;
  /** Ends the run now, and what waits for an answer; resolves when it has ended. */
  cancel(): Promise<void>;
  /** The thread's messages; a copy. */
  history(): Promise<Message[]>;
  /** The thread's values: todos, files and what hooks and loops have set. */
  state(): Promise<Record<string, unknown>>;
  metadata(): Promise<z.infer<typeof Metadata>>;
  /** Changes the thread's title or metadata, and creates the thread if it is not there. */
  describe(change: { title?: string; metadata?: z.infer<typeof Metadata> }): Promise<Thread>;
  /** Of the thread for which this one works. */
  parent(): Promise<AgentHandle | undefined>;
  /** Of the threads that work for this one, newest change first; a hundred at most. */
  children(): Promise<AgentHandle[]>;
}
