// Recognises errors of a machine that has run out of a resource.

import { causesOf } from "../lib/causes.ts";

/** By errno. */
const RESOURCES: Readonly<Record<string, string>> = {
  EMFILE: "file descriptors of the process",
  ENFILE: "file descriptors of the machine",
  ENOSPC: "room on the disk",
  EDQUOT: "the disk quota",
  EROFS: "a disk that can be written",
};

/** The resource whose lack made the error, or one of its causes; undefined for any other error. */
export function exhausted(error: unknown): string | undefined {
  for (const each of causesOf(error)) {
    const code = "code" in each ? String(each.code) : "";
    if (Object.hasOwn(RESOURCES, code)) return RESOURCES[code];
  }
  return undefined;
}
