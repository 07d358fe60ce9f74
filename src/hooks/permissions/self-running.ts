// Files whose content is executed without being named in a command: by git, by a shell that starts, by an editor that opens
// the folder. Who may write them may run anything.

import type { ToolCall } from "../../core/message.ts";
import { compatibleForm } from "../../lib/unicode.ts";

/** Everything below them counts, and they themselves. */
const FOLDERS = new Set(
  ".git git~1 .hg .husky .githooks .vscode .idea .devcontainer .ssh .direnv .claude .cursor autostart".split(
    " ",
  ),
);

/** In any folder. A folder that has a `HEAD` may be taken for a repository, with hooks and a configuration. */
const FILES = new Set(
  (
    "head .gitconfig .gitmodules .gitattributes .envrc .mcp.json .pre-commit-config.yaml lefthook.yml " +
    ".profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zshenv .zprofile .zlogin .zlogout " +
    ".kshrc .cshrc .tcshrc .login .logout .inputrc .vimrc .exrc .nvimrc .emacs .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs " +
    "sitecustomize.py usercustomize.py .pythonrc .irbrc .pryrc .gdbinit .lldbinit .mailcap .xprofile .xsession .xinitrc"
  ).split(" "),
);

const isOne = (name: string) => FOLDERS.has(name) || FILES.has(name) || name.endsWith(".pth");

/** What files hold, as tools that write call it. */
const CONTENTS = new Set(["content", "old_text", "new_text"]);

/** The file that a call names and that would run by itself; undefined when there is none. */
export function selfRunningFile({ args }: ToolCall): string | undefined {
  return Object.entries(args)
    .flatMap(([key, value]) => (CONTENTS.has(key) ? [] : textsIn(value)))
    .find(runsByItself);
}

function runsByItself(path: string): boolean {
  // As file systems read names that ignore case, characters that cannot be seen, and dots and blanks at the end.
  const plain = compatibleForm(path)
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
  const names = plain.split(/[/\\]/).map((name) => endless(name.split(":", 1)[0] ?? ""));
  return names.some(isOne) || /(^|[/\\])\.config[/\\](git|fish)([/\\]|$)/.test(plain);
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
