// Builds the notes about runs that a conversation shows between its messages.

import { endText } from "../protocol/end-texts.ts";
import type { NoteCell } from "./cells.ts";
import { type Ending, outcomeOf } from "./outcome.ts";

export type Note = Pick<NoteCell, "text" | "tone" | "outcome" | "reason">;

/** Returns the note for the end of a run, or undefined if the run simply succeeded. */
export function endOf(
  ending: Ending,
  error?: { readonly message: string; readonly code?: string },
): Note | undefined {
  const outcome = outcomeOf(ending, false);
  if (error) return { text: error.message, tone: "error", outcome, reason: error.code };
  const { stop_reason: reason, message = endText({ ...ending, isEmpty: outcome === "empty" }) } = ending;
  if (message === undefined) return undefined;
  return { text: message, tone: outcome === "failed" ? "warning" : "quiet", outcome, reason };
}
