// Files whose content runs without being named in a command: by git, by a starting shell, or by an editor that opens the folder.
// Write access to them is permission to run anything. Every name that begins with a dot counts, as a file or a folder, because no
// list of them is complete.

import { compatibleForm } from "../../../lib/unicode.ts";
import type { ToolCall } from "../../core/message.ts";

/** Files that no program executes. */
const HARMLESS =
  /^\.(?:gitignore|gitkeep|keep|nojekyll|dockerignore|npmignore|prettierignore|eslintignore|editorconfig|env(?:\.[\w-]+)?)$/;

/**
 * A folder with a `HEAD` may count as a repository, with hooks and a configuration. Python executes the other
 * files when it starts.
 */
const OTHERS = /^(?:head|.*\.git|git~1|sitecustomize\.py|usercustomize\.py|.*\.pth|lefthook\.ya?ml)$/;

const isOne = (name: string) => (name.startsWith(".") && !HARMLESS.test(name)) || OTHERS.test(name);

/** Argument names that writing tools use for file contents. */
const CONTENTS = new Set(["content", "old_text", "new_text"]);

/** The first path in the call's arguments for which `isOne` returns true. */
export function namedFile({ args }: ToolCall, isOne: (path: string) => boolean): string | undefined {
  return Object.entries(args)
    .flatMap(([key, value]) => (CONTENTS.has(key) ? [] : textsIn(value)))
    .find(isOne);
}

/** True if the path names such a file or leads through such a folder. */
export function runsByItself(path: string): boolean {
  // Normalizes like file systems that ignore case, invisible characters, and dots and spaces at the end.
  const plain = compatibleForm(path)
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
  const names = plain.split(/[/\\]/).map((name) => endless(name.split(":", 1)[0] ?? ""));
  return names.some(isOne);
}

/** Removes dots and spaces at the end. */
function endless(name: string): string {
  let end = name.length;
  while (end > 0 && /[. ]/.test(name.charAt(end - 1))) end--;
  return name.slice(0, end);
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
