// Detects files whose content runs although no command names them. Git, a starting shell, or an editor that opens the folder
// can run them. A permission to write such files is a permission to run anything. Every file or folder whose name begins
// with a dot counts, because no list could be complete.

import { compatibleForm } from "../../../lib/unicode.ts";
import type { ToolCall } from "../../core/message.ts";

/** Files that no program executes. */
const HARMLESS =
  /^\.(?:gitignore|gitkeep|keep|nojekyll|dockerignore|npmignore|prettierignore|eslintignore|editorconfig|env(?:\.[\w-]+)?)$/;

/**
 * Git may treat a folder with a `HEAD` as a repository, with hooks and a configuration. Python executes the
 * other files when it starts.
 */
const OTHERS = /^(?:head|.*\.git|git~1|sitecustomize\.py|usercustomize\.py|.*\.pth|lefthook\.ya?ml)$/;

const isOne = (name: string) => (name.startsWith(".") && !HARMLESS.test(name)) || OTHERS.test(name);

/** The argument names that tools use for the file contents they write. */
const CONTENTS = new Set(["content", "old_text", "new_text"]);

/** Returns the first path in the call's arguments for which `isOne` returns true. */
export function namedFile({ args }: ToolCall, isOne: (path: string) => boolean): string | undefined {
  return Object.entries(args)
    .flatMap(([key, value]) => (CONTENTS.has(key) ? [] : textsIn(value)))
    .find(isOne);
}

/** True if the path names a file, or leads through a folder, whose content runs by itself. */
export function runsByItself(path: string): boolean {
  // Normalizes the path like file systems that ignore case, invisible characters, and dots and spaces at the
  // end.
  const plain = compatibleForm(path)
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
  const names = plain.split(/[/\\]/).map((name) => endless(name.split(":", 1)[0] ?? ""));
  return names.some(isOne);
}

/** Removes dots and spaces from the end of a name. */
function endless(name: string): string {
  let end = name.length;
  while (end > 0 && /[. ]/.test(name.charAt(end - 1))) end--;
  return name.slice(0, end);
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
