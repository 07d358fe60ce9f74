// Describes how a call would change a file. Independent of the DOM.

import { indexIn } from "../lib/search.ts";
import { diffLines, hunksOf } from "./diff.ts";
import { type Difference, edited } from "./file-changes.ts";

export interface FileCall {
  readonly path: string;
  /** The whole new text, or the part to replace. */
  readonly change: { readonly content: string } | { readonly old_text: string; readonly new_text: string };
}

/** Returns undefined for calls that do not change a file, and for arguments that a diff cannot show. */
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

/** `missing`: the file does not exist. `unknown`: the file was not read. */
export type CurrentContent = { readonly text: string } | "missing" | "unknown";

/** Returns undefined if there is nothing to compare with. `isFound`: the file contains the text that the edit replaces. */
export function differenceOf(
  { change }: FileCall,
  current: CurrentContent,
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

/** The maximum number of changed lines that a user can review line by line. */
const MAX_LINES = 2000;

/** Returns whether every changed line can be shown. */
export const isReadable = ({ before, after }: Difference): boolean => {
  const count = hunksOf(diffLines(before, after)).reduce((sum, { length }) => sum + length, 0);
  return count > 0 && count <= MAX_LINES;
};
