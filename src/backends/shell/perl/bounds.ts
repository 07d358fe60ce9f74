// What both ends of the wire hold themselves to. Sizes are in bytes.

/** The first thing that the helper says, as the fields of `h`. */
export const GREETING: readonly string[] = ["skein-files", "1"];

/** Of a file's content in one frame, and of what is asked for at once. */
export const CHUNK_BYTES = 128 * 1024;
/** A frame holds a chunk and a little more: paths, or 200 names. */
export const MAX_FRAME_BYTES = CHUNK_BYTES + 128 * 1024;
/** A folder is listed up to here, in the order of the disk. */
export const MAX_LISTED = 10_000;
/** Entries that a search looks at, and what their paths may take. */
export const MAX_WALKED = 50_000;
export const MAX_WALKED_BYTES = 8 * 1024 * 1024;
/** Files that are read or written at once: one more closes the one that was used least lately. */
export const MAX_OPEN = 64;
