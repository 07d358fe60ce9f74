// Tells what a machine has run out of from what tools and other servers refuse.

/** By errno. */
const RESOURCES: Readonly<Record<string, string>> = {
  EMFILE: "file descriptors of the process",
  ENFILE: "file descriptors of the machine",
  ENOSPC: "room on the disk",
  EDQUOT: "the disk quota",
  EROFS: "a disk that can be written",
};

/** How many causes of an error are looked at. */
const MAX_DEPTH = 8;

/** The resource whose lack made the error, or one of its causes; undefined for any other error. */
export function exhausted(error: unknown): string | undefined {
  let each = error;
  for (let depth = 0; depth < MAX_DEPTH && each instanceof Error; depth++) {
    const code = "code" in each ? String(each.code) : "";
    if (Object.hasOwn(RESOURCES, code)) return RESOURCES[code];
    each = each.cause;
  }
  return undefined;
}
