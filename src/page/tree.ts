// The files of a workspace: their names and paths, and what of a folder is shown. No DOM.

import type { FileEntry } from "../client/client.ts";
import { number, oneDecimal } from "./numbers.ts";
import { t } from "./texts.ts";

/** Of one folder: a page with tens of thousands of rows is slow, and no person reads them. */
const MAX_SHOWN = 500;

/** Folders first, then by name; and how many entries are left out. */
export function shownIn(entries: readonly FileEntry[]): { shown: FileEntry[]; more: number } {
  const rank = ({ type }: FileEntry) => (type === "directory" ? 0 : 1);
  const sorted = entries.toSorted((a, b) => rank(a) - rank(b) || (nameOf(a.path) < nameOf(b.path) ? -1 : 1));
  return { shown: sorted.slice(0, MAX_SHOWN), more: Math.max(0, sorted.length - MAX_SHOWN) };
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const joined = (folder: string, name: string): string => (folder === "" ? name : `${folder}/${name}`);

/** A path that a person typed: without slashes at its ends and parts that lead nowhere. */
export const tidied = (path: string): string =>
  path
    .split("/")
    .map((part) => part.trim())
    .filter((part) => part !== "" && part !== ".")
    .join("/");

/** The path of a file from the workspace on, or as it is when it lies elsewhere. */
export function withinWorkspace(workdir: string, path: string): string {
  if (path.startsWith(`${workdir}/`)) return tidied(path.slice(workdir.length));
  return path.startsWith("/") ? path : tidied(path);
}

/** `1 byte`, `12 KB`, `1.4 MB`. */
export function sizeOf(bytes: number): string {
  const { byte, units } = t().sizes;
  if (bytes === 1) return byte;
  const unit = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1024)));
  const value = bytes / 1024 ** unit;
  return `${unit > 0 && value < 10 ? oneDecimal(value) : number(Math.round(value))} ${units[unit]}`;
}
