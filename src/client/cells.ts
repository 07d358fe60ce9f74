// The parts of a thread that a page shows: plain objects that the fold changes in place and the views observe.

import type { Ending, Outcome } from "./outcome.ts";
import type { Phase } from "./phase.ts";
import type { Interrupt, Part, Usage, WebSource } from "./wire.ts";

/** `waits`: the call waits for an answer from outside. `stopped`: the run ended first. */
export type CellState = "open" | "done" | "failed" | "waits" | "stopped";

export interface UserCell {
  readonly kind: "user";
  readonly key: string;
  readonly id: string;
  readonly text: string;
  readonly attachments: readonly Exclude<Part, { type: "text" }>[];
  readonly at: string;
}
export interface TextCell {
  readonly kind: "text";
  readonly key: string;
  /** The id of the message. */
  readonly id: string;
  text: string;
  state: CellState;
  /** Time when the message was written, by the server's clock. Absent while the model writes it. */
  at?: string;
  /** The message was cut off, and the thread contains the part that was written. A run can continue it. */
  isKept?: boolean;
  /** Pages of the web that tools have read since the answer before. Absent if there are none. */
  sources?: readonly WebSource[];
}
export interface ThoughtCell {
  readonly kind: "thought";
  readonly key: string;
  text: string;
  state: CellState;
  /** Duration in milliseconds. Known only if the page was open in the meantime. */
  ms?: number;
}
export interface ToolCell {
  readonly kind: "tool";
  readonly key: string;
  readonly call: string;
  name: string;
  /** The time of the most recent message about the call (the call, then its result), by the server's clock. */
  at?: string;
  args?: Readonly<Record<string, unknown>>;
  /** The arguments, while the model writes them. */
  writing: Output;
  output: Output;
  state: CellState;
  /** A person or a rule denied the call. The output gives the reason. */
  isDenied?: boolean;
  /** A new message withdrew the call before it was allowed. The output is a sentence in English. */
  isWithdrawn?: boolean;
  /** Start time, by the server's clock. */
  began?: string;
  ms?: number;
  readonly agents: AgentCell[];
}
/** A subagent, on the card of the call that it works for. */
export interface AgentCell {
  readonly kind: "agent";
  readonly key: string;
  readonly thread: string;
  run?: string;
  name: string;
  agent: string;
  status: string;
  summary: string;
  began?: string;
  ms?: number;
  usage?: Usage;
  readonly lane: Lane;
}
export interface NoteCell {
  readonly kind: "note";
  readonly key: string;
  readonly text: string;
  readonly tone: "quiet" | "warning" | "error";
  /** How the run ended. Absent when the note is not about the end of a run. */
  readonly outcome?: Outcome;
  /** A code, so a page can use its own words: the warning's code, the run's `stop_reason`, or the code of its error. */
  readonly reason?: string | undefined;
}
export type Cell = UserCell | TextCell | ThoughtCell | ToolCell | AgentCell | NoteCell;

export interface Lane {
  readonly cells: Cell[];
}

export interface Todo {
  readonly id: string;
  readonly title: string;
  readonly status: string;
}

/** The most recent run, or the run in progress. */
export interface RunNow {
  id?: string | undefined;
  agent?: string | undefined;
  model?: string | undefined;
  isActive: boolean;
  /** How the run ended, for `outcomeOf`. Absent while it is in progress. */
  ending?: Ending | undefined;
  phase: Phase;
  /** The tokens that the run's model calls have used so far, including those of its subagents. */
  tokens: number;
}

export interface ThreadView {
  readonly lane: Lane;
  readonly run: RunNow;
  todos: readonly Todo[];
  /** Open questions that wait for an answer. */
  asks: readonly Interrupt[];
}

/** A text that keeps only its beginning and its end. */
export interface Output {
  head: string;
  tail: string;
  /** The number of characters that were dropped between the two. */
  dropped: number;
}

/** The number of characters to keep at each end. */
const KEPT = 50_000;

export const outputOf = (text: string): Output => {
  const output: Output = { head: "", tail: "", dropped: 0 };
  append(output, text);
  return output;
};

export function append(output: Output, piece: string): void {
  const room = KEPT - output.head.length;
  if (room > 0) output.head += piece.slice(0, room);
  output.tail += room > 0 ? piece.slice(room) : piece;
  // Cut rarely, because each cut copies the whole tail.
  if (output.tail.length > 2 * KEPT) cut(output);
}

function cut(output: Output): void {
  output.dropped += output.tail.length - KEPT;
  output.tail = output.tail.slice(-KEPT);
}

/** Returns the text. `gap` gets the number of dropped characters and returns the text that replaces them. */
export function shown(
  { head, tail, dropped }: Output,
  gap = (missing: number) => `… ${missing} characters …`,
): string {
  const extra = Math.max(0, tail.length - KEPT);
  const missing = dropped + extra;
  return missing === 0 ? head + tail : `${head}\n${gap(missing)}\n${tail.slice(extra)}`;
}

/** Returns the last characters of a text that is still growing. */
export const lastOf = ({ head, tail }: Output, length: number): string =>
  (tail.length >= length ? tail : head + tail).slice(-length);
