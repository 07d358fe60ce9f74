// The files of a workspace: names, paths, and the visible entries of a folder. Independent of the DOM.

import type { FileEntry } from "../client/client.ts";
import { number, oneDecimal } from "./numbers.ts";
import { t } from "./texts.ts";

/**
 * The maximum number of entries per folder. Drawing tens of thousands of rows would be slow, and no one would read
 * them.
 */
const MAX_SHOWN = 500;

/** Returns the visible entries, folders first, then by name, and the number of hidden entries. */
export function shownIn(entries: readonly FileEntry[]): { shown: FileEntry[]; more: number } {
  const rank = ({ type }: FileEntry) => (type === "directory" ? 0 : 1);
  const sorted = entries.toSorted((a, b) => rank(a) - rank(b) || (nameOf(a.path) < nameOf(b.path) ? -1 : 1));
  return { shown: sorted.slice(0, MAX_SHOWN), more: Math.max(0, sorted.length - MAX_SHOWN) };
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const joined = (folder: string, name: string): string => (folder === "" ? name : `${folder}/${name}`);

/** Cleans up a typed path: removes slashes at both ends, and `.` and empty parts. */
export const tidied = (path: string): string =>
  path
    .split("/")
    .map((part) => part.trim())
    .filter((part) => part !== "" && part !== ".")
    .join("/");

/** Returns a path relative to the workspace, or the path unchanged if the file is outside it. */
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
