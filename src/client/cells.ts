// The parts of a thread that a page shows: plain objects that the fold updates in place and the views observe.

import type { Ending, Outcome } from "./outcome.ts";
import type { Phase } from "./phase.ts";
import type { Interrupt, Part, Usage, WebSource } from "./wire.ts";

/** `waits` means that the call waits for an answer from outside. `stopped` means that the run ended first. */
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
  /** The time at which the message was written, by the server's clock. Absent while the model writes it. */
  at?: string;
  /** True if the message was cut off and the thread contains the part that was written. A run can continue it. */
  isKept?: boolean;
  /** The web pages that tools have read since the previous answer. Absent if there are none. */
  sources?: readonly WebSource[];
}
export interface ThoughtCell {
  readonly kind: "thought";
  readonly key: string;
  text: string;
  state: CellState;
  /** The duration in milliseconds. Absent if the page was not open during the call. */
  ms?: number;
}
export interface ToolCell {
  readonly kind: "tool";
  readonly key: string;
  readonly call: string;
  name: string;
  /** The time of the most recent message about the call, by the server's clock: the call itself, then its result. */
  at?: string;
  args?: Readonly<Record<string, unknown>>;
  /** The arguments that the model has written so far. */
  writing: Output;
  output: Output;
  state: CellState;
  /** True if a person or a rule denied the call. The output contains the reason. */
  isDenied?: boolean;
  /**
   * True if a new message withdrew the call before it was allowed. The output then contains the server's English error
   * text.
   */
  isWithdrawn?: boolean;
  /** The start time, by the server's clock. */
  began?: string;
  ms?: number;
  readonly agents: AgentCell[];
}
/** A subagent, shown on the card of the call that it works for. */
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
  /** How the run ended. Absent if the note is about something else. */
  readonly outcome?: Outcome;
  /**
   * A code that a page can replace with its own words: the warning's code, the run's `stop_reason`, or the code of its
   * error.
   */
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
  /** The tokens that the run's model calls have used so far, including the tokens of its subagents. */
  tokens: number;
}

export interface ThreadView {
  readonly lane: Lane;
  readonly run: RunNow;
  todos: readonly Todo[];
  /** Open questions that wait for an answer. */
  asks: readonly Interrupt[];
}

/** The beginning and the end of a text. The middle is dropped. */
export interface Output {
  head: string;
  tail: string;
  /** The number of characters dropped between the beginning and the end. */
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
  // The tail is cut only when it has doubled in size, because each cut copies the whole tail.
  if (output.tail.length > 2 * KEPT) cut(output);
}

function cut(output: Output): void {
  output.dropped += output.tail.length - KEPT;
  output.tail = output.tail.slice(-KEPT);
}

/** Returns the text. `gap` is called with the number of dropped characters and returns the text to show instead. */
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
