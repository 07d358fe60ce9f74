// Finds the location in a plugin's files at which an import failed, as `file:line:column: message`. Node reports it
// differently for syntax errors in TypeScript and in JavaScript, for errors that a module throws and for missing
// imports.

import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../agent/core/errors.ts";
import type { ImportedModule } from "./import.ts";

interface SourceLocation {
  readonly file: string;
  readonly line: number;
  readonly column?: number | undefined;
}

/** Returns a single line. Paths below `folder` are relative to it. */
export function faultOfImport(
  error: unknown,
  { files, unresolved }: Omit<ImportedModule, "outcome">,
  folder: string,
): string {
  const what = `${nameOf(error)}${messageOf(error)}`.split("\n")[0] ?? "";
  if (unresolved) return `${said(placeOfImport(unresolved), folder)}${notFound(unresolved.specifier)}`;
  const place =
    placeInStack(error, files) ?? (error instanceof SyntaxError ? placeOfSyntax(files) : undefined);
  return `${place ? said(place, folder) : ""}${plain(what)}`;
}

const nameOf = (error: unknown) =>
  error instanceof Error && error.name !== "Error" && error.name !== "AppError" ? `${error.name}: ` : "";

/** Removes the version that `import` appends. */
const plain = (text: string) => text.replaceAll(/\?skein-plugin=\d+/g, "");

function said({ file, line, column }: SourceLocation, folder: string): string {
  const below = relative(folder, file);
  const path = below.startsWith("..") ? file : `./${below}`;
  return `${path}:${line}${column === undefined ? "" : `:${column}`}: `;
}

const notFound = (specifier: string) =>
  /^\.{0,2}\//.test(specifier)
    ? `there is no file \`${specifier}\``
    : `cannot find the package \`${specifier}\`; install it in the project of this file`;

/** Returns the first line of a decorated stack, or the first frame in one of the files. */
function placeInStack(error: unknown, files: readonly string[]): SourceLocation | undefined {
  const stack = error instanceof Error ? plain(error.stack ?? "") : "";
  const [, path, line] = /^((?:file:\/\/)?\/[^\n]*?):(\d+)\n/.exec(stack) ?? [];
  if (path && line) return { file: pathOf(path), line: Number(line), column: caretOf(stack) };
  for (const [, url = "", at, column] of stack.matchAll(/\(?((?:file:\/\/)?\/[^\s()]+):(\d+):(\d+)\)?$/gm)) {
    const file = pathOf(url);
    if (files.includes(file)) return { file, line: Number(at), column: Number(column) };
  }
  return undefined;
}

const pathOf = (path: string) => (path.startsWith("file:") ? fileURLToPath(path) : path);

/** Returns the column that the `^` line points at. */
function caretOf(stack: string): number | undefined {
  const carets = /^( *)\^+\s*$/m.exec(stack);
  return carets ? (carets[1] ?? "").length + 1 : undefined;
}

/** V8 does not report the location of a syntax error in JavaScript, but the parser that strips types does. */
function placeOfSyntax(files: readonly string[]): SourceLocation | undefined {
  for (const file of files) {
    try {
      stripTypeScriptTypes(readFileSync(file, "utf8"), { sourceUrl: file });
    } catch (error) {
      const place = placeInStack(error, files);
      if (place) return place;
    }
  }
  return undefined;
}

function placeOfImport({ file, specifier }: { file: string; specifier: string }): SourceLocation {
  const before = textBefore(file, specifier).split("\n");
  return { file, line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

/** Returns the text of a file up to the specifier. */
function textBefore(file: string, specifier: string): string {
  const text = readFileSync(file, "utf8");
  const at = [`"${specifier}"`, `'${specifier}'`]
    .map((quoted) => text.indexOf(quoted))
    .find((found) => found >= 0);
  return text.slice(0, at ?? 0);
}
