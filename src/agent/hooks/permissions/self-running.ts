// Files whose content is executed without being named in a command: by git, by a shell that starts, by an editor that opens
// the folder. Who may write them may run anything. A name that begins with a dot is such a file or a folder of such files: no
// list of them is complete.

import { compatibleForm } from "../../../lib/unicode.ts";
import type { ToolCall } from "../../core/message.ts";

/** Nothing runs what they say. */
const HARMLESS =
  /^\.(?:gitignore|gitkeep|keep|nojekyll|dockerignore|npmignore|prettierignore|eslintignore|editorconfig|env(?:\.[\w-]+)?)$/;

/** A folder that has a `HEAD` may be taken for a repository, with hooks and a configuration. Python runs the others when it starts. */
const OTHERS = /^(?:head|.*\.git|git~1|sitecustomize\.py|usercustomize\.py|.*\.pth|lefthook\.ya?ml)$/;

const isOne = (name: string) => (name.startsWith(".") && !HARMLESS.test(name)) || OTHERS.test(name);

/** What files hold, as tools that write call it. */
const CONTENTS = new Set(["content", "old_text", "new_text"]);

/** The first of the paths that a call names for which this is so. */
export function namedFile({ args }: ToolCall, isOne: (path: string) => boolean): string | undefined {
  return Object.entries(args)
    .flatMap(([key, value]) => (CONTENTS.has(key) ? [] : textsIn(value)))
    .find(isOne);
}

/** Whether the path names such a file, or leads through such a folder. */
export function runsByItself(path: string): boolean {
  // As file systems read names that ignore case, characters that cannot be seen, and dots and blanks at the end.
  const plain = compatibleForm(path)
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
  const names = plain.split(/[/\\]/).map((name) => endless(name.split(":", 1)[0] ?? ""));
  return names.some(isOne);
}

/** Without the dots and blanks at its end. */
function endless(name: string): string {
  let end = name.length;
  while (end > 0 && /[. ]/.test(name.charAt(end - 1))) end--;
  return name.slice(0, end);
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
