// What a page shows of a thread: plain objects that the fold changes in place and the views watch.

import type { Ending, Outcome } from "./outcome.ts";
import type { Phase } from "./phase.ts";
import type { Interrupt, Part, Usage } from "./wire.ts";

/** `waits`: for an answer from outside. `stopped`: the run ended before it did. */
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
  /** The id of its message. */
  readonly id: string;
  text: string;
  state: CellState;
  /** When its message was written, by the clock of the server. Absent while it is written. */
  at?: string;
  /** It was cut off, and is in the thread as far as it was said: it can be continued. */
  isKept?: boolean;
}
export interface ThoughtCell {
  readonly kind: "thought";
  readonly key: string;
  text: string;
  state: CellState;
  /** Seen live only. */
  ms?: number;
}
export interface ToolCell {
  readonly kind: "tool";
  readonly key: string;
  readonly call: string;
  name: string;
  /** When the thread got its newest message about it, by the clock of the server: the call, then its result. */
  at?: string;
  args?: Readonly<Record<string, unknown>>;
  /** The arguments as the model writes them. */
  writing: Output;
  output: Output;
  state: CellState;
  /** A person or a rule did not allow it: the output is why. */
  isDenied?: boolean;
  /** A new message came before it was allowed. The output says so, in English. */
  isWithdrawn?: boolean;
  /** When it started, by the clock of the server. */
  began?: string;
  ms?: number;
  readonly agents: AgentCell[];
}
/** A subagent, in the card of the call that it works for. */
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
  /** How the run ended that it is about. Absent: it is about something else. */
  readonly outcome?: Outcome;
  /** Its code, for those who say it in other words: of a warning, or why the run ended (its `stop_reason`, or the code of its error). */
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

/** The newest run, or the one in progress. */
export interface RunNow {
  id?: string | undefined;
  agent?: string | undefined;
  model?: string | undefined;
  isActive: boolean;
  /** Absent while it is in progress: for `outcomeOf`. */
  ending?: Ending | undefined;
  phase: Phase;
  /** What its model calls have used so far, those of its subagents included. */
  tokens: number;
}

export interface ThreadView {
  readonly lane: Lane;
  readonly run: RunNow;
  todos: readonly Todo[];
  /** What waits for an answer. */
  asks: readonly Interrupt[];
}

/** A text of which only the beginning and the end are kept. */
export interface Output {
  head: string;
  tail: string;
  /** Characters between the two that are not kept. */
  dropped: number;
}

/** Characters kept of each end. */
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
  // Cut only now and then: a cut copies the whole tail.
  if (output.tail.length > 2 * KEPT) cut(output);
}

function cut(output: Output): void {
  output.dropped += output.tail.length - KEPT;
  output.tail = output.tail.slice(-KEPT);
}

/** `gap` returns the text that replaces characters that are not kept, given their number. */
export function shown(
  { head, tail, dropped }: Output,
  gap = (missing: number) => `… ${missing} characters …`,
): string {
  const extra = Math.max(0, tail.length - KEPT);
  const missing = dropped + extra;
  return missing === 0 ? head + tail : `${head}\n${gap(missing)}\n${tail.slice(extra)}`;
}

/** The last characters, for what is still growing. */
export const lastOf = ({ head, tail }: Output, length: number): string =>
  (tail.length >= length ? tail : head + tail).slice(-length);
