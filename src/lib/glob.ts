// File name patterns: `*` and `?` within a name, `**` over folders, `[a-z]`, `[!a-z]`, `{a,b}`, `\` as an escape. A
// leading dot is an ordinary character. Brackets also match themselves, as in the path `app/[slug]/page.tsx`. Matching takes linear time (RE2), because models write patterns.

import { RE2JS } from "re2js";
import { MAX_LENGTH, type SafeRegex, safeRegex, tooLong } from "./regex.ts";

/**
 * Returns a matcher for relative paths. A pattern without `/` matches the last name of the path, or the whole path if
 * it begins with `./`. Throws a `SyntaxError` whose message completes "The pattern …".
 */
export function globMatcher(pattern: string): (path: string) => boolean {
  // Has the same limit as expressions, because even translating a pattern that is then refused takes time.
  if (pattern.length > MAX_LENGTH) throw tooLong(pattern);
  const trimmed = pattern.replace(/^(\.?\/)+/, "");
  if (trimmed === "") throw new SyntaxError("is empty");
  const regex: SafeRegex = safeRegex(translate(trimmed), RE2JS.DOTALL);
  if (pattern.includes("/")) return (path) => regex.matches(path);
  return (path) => regex.matches(path.slice(path.lastIndexOf("/") + 1));
}

function translate(glob: string): string {
  let regex = "";
  let open = 0;
  for (let at = 0; at < glob.length; ) {
    const [length, part] = piece(glob, at, open);
    if (part === "(?:") open++;
    if (part === ")") open--;
    regex += part;
    at += length;
  }
  if (open > 0) throw new SyntaxError("has a `{` without `}`; write `\\{` for the character itself");
  return regex;
}

/** Translates the piece of the pattern at `at`. Returns its length and its regular expression. */
function piece(glob: string, at: number, open: number): [number, string] {
  const char = glob.charAt(at);
  switch (char) {
    case "*":
      return stars(glob, at);
    case "?":
      return [1, "[^/]"];
    case "[":
      return characterClass(glob, at);
    case "{":
      return [1, "(?:"];
    case "}":
      return [1, open > 0 ? ")" : "\\}"];
    case ",":
      return [1, open > 0 ? "|" : ","];
    case "\\":
      return at + 1 < glob.length ? [2, RE2JS.quote(glob.charAt(at + 1))] : [1, "\\\\"];
    default:
      return [1, RE2JS.quote(char)];
  }
}

/** `**` as a whole name matches any number of folders. Anywhere else it means `*`. */
function stars(glob: string, at: number): [number, string] {
  let end = at;
  while (glob.charAt(end) === "*") end++;
  const isWhole = /^[/{,]?$/.test(glob.charAt(at - 1)) && /^[/},]?$/.test(glob.charAt(end));
  if (end - at !== 2 || !isWhole) return [end - at, "[^/]*"];
  return glob.charAt(end) === "/" ? [3, "(?:[^/]+/)*"] : [2, ".+"];
}

function characterClass(glob: string, at: number): [number, string] {
  const negated = /[!^]/.test(glob.charAt(at + 1));
  const start = at + (negated ? 2 : 1);
  // A leading `]` is one of the characters.
  const end = glob.indexOf("]", start + 1);
  if (end === -1) throw new SyntaxError("has a `[` without `]`; write `\\[` for the character itself");
  const members = glob.slice(start, end).replace(/[\\[\]^]/g, "\\$&");
  const literal = RE2JS.quote(glob.slice(at, end + 1));
  return [end - at + 1, `(?:[${negated ? "^/" : ""}${members}]|${literal})`];
}
