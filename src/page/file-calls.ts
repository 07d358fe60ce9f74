// A call that would change a file, and what it would change. No DOM.

import { indexIn } from "../lib/search.ts";
import { diffLines, hunksOf } from "./diff.ts";
import { type Difference, edited } from "./file-changes.ts";

export interface FileCall {
  readonly path: string;
  /** The whole text that is written, or the piece that is replaced. */
  readonly change: { readonly content: string } | { readonly old_text: string; readonly new_text: string };
}

/** Undefined for other calls, and for arguments that a difference would not show. */
export function fileCallOf(name: string, args: Readonly<Record<string, unknown>>): FileCall | undefined {
  const { path, content, old_text, new_text } = args;
  const count = Object.keys(args).length;
  if (typeof path !== "string") return undefined;
  if (name === "write_file" && count === 2 && typeof content === "string")
    return { path, change: { content } };
  if (name === "edit_file" && count === 3 && typeof old_text === "string" && typeof new_text === "string")
    return { path, change: { old_text, new_text } };
  return undefined;
}

/** `missing`: there is no such file yet. `unknown`: it was not read. */
export type Current = { readonly text: string } | "missing" | "unknown";

/** Undefined when nothing is known to compare with. `isFound`: the file has the text that an edit replaces. */
export function differenceOf(
  { change }: FileCall,
  current: Current,
): (Difference & { readonly isFound: boolean }) | undefined {
  const text = typeof current === "object" ? current.text : undefined;
  if ("content" in change) {
    if (current === "unknown") return undefined;
    return { before: text ?? "", after: change.content, isWhole: true, isFound: true };
  }
  const { old_text, new_text } = change;
  if (text !== undefined && old_text !== "" && indexIn(text, old_text) >= 0)
    return { before: text, after: edited(text, change), isWhole: true, isFound: true };
  return { before: old_text, after: new_text, isWhole: false, isFound: current === "unknown" };
}

/** More lines than a person decides on line by line. */
const MAX_LINES = 2000;

/** Whether every changed line can be shown. */
export const isReadable = ({ before, after }: Difference): boolean => {
  const count = hunksOf(diffLines(before, after)).reduce((sum, { length }) => sum + length, 0);
  return count > 0 && count <= MAX_LINES;
};
