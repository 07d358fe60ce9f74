// Versions of a user's files, sent as `ETag`. A write that names its base version does not overwrite any other version
// (RFC 9110, §13.1). The version of a small file is a hash of its content, because two writes may happen in the same
// second and have the same size.

import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Backend, FileStat } from "../../agent/core/backend.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";

/** The version of a larger file consists of its size and the time of its last modification. */
const HASHED_BYTES = 1024 * 1024;

type Bytes = AsyncIterable<Uint8Array>;

export interface FileVersion {
  readonly etag: string;
  /** The whole file, if it is small. */
  readonly bytes?: Buffer;
}

export async function versionOf(
  backend: Pick<Backend, "read">,
  { path, type, size, modified_at }: FileStat,
  signal: AbortSignal,
): Promise<FileVersion> {
  if (type !== "file" || size > HASHED_BYTES)
    return { etag: `"${size.toString(36)}-${Date.parse(modified_at).toString(36)}"` };
  const chunks: Uint8Array[] = [];
  // The file may grow meanwhile, or may have no end.
  if (size > 0) for await (const chunk of backend.read(path, { length: size }, signal)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return { etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`, bytes };
}

/** The versions of a file that a write may overwrite. */
export interface FilePrecondition {
  /** The versions that match. `any` means that the file must exist. */
  readonly match?: ReadonlySet<string> | "any";
  readonly isNew: boolean;
}

/**
 * Returns undefined if neither `If-Match` nor `If-None-Match` was sent. Throws `invalid_request` for a value that is
 * neither `*` nor a list of versions.
 */
export function preconditionIn(headers: IncomingHttpHeaders): FilePrecondition | undefined {
  const { "if-match": match, "if-none-match": none } = headers;
  if (none !== undefined && none.trim() !== "*")
    throw new AppError(
      "invalid_request",
      "`If-None-Match` must be `*`, which writes the file only if it does not exist.",
    );
  if (match === undefined) return none === undefined ? undefined : { isNew: true };
  if (match.trim() === "*") return { match: "any", isNew: none !== undefined };
  const versions = match.match(/"[^"]*"/g);
  if (!versions)
    throw new AppError(
      "invalid_request",
      `\`If-Match: ${match}\` does not name a version. Send the \`ETag\` of a read.`,
    );
  return { match: new Set(versions), isNew: none !== undefined };
}

/** Throws `precondition_failed` if the file is not the version that the caller expects. */
export async function requireVersion(
  backend: Pick<Backend, "read" | "stat">,
  path: string,
  { match, isNew }: FilePrecondition,
  signal: AbortSignal,
): Promise<void> {
  const stat = await backend.stat(path, signal).catch((error: unknown) => {
    if (hasCode(error, "not_found")) return undefined;
    throw error;
  });
  if (isNew && stat) throw failed(`A file already exists at \`${path}\`.`);
  if (match && !stat) throw failed(`The file \`${path}\` no longer exists.`);
  if (!match || match === "any" || !stat) return;
  const { etag } = await versionOf(backend, stat, signal);
  if (match.has(etag)) return;
  throw failed(`\`${path}\` has changed since the version in \`If-Match\`.`, { etag });
}

const failed = (what: string, details?: Record<string, unknown>) =>
  new AppError(
    "precondition_failed",
    `${what} Nothing was written. Read the file again before you write it.`,
    details,
  );

/**
 * Returns the same bytes once the first of them have arrived, so that a version is checked shortly before the write.
 */
export async function arrived(body: Bytes): Promise<Bytes> {
  const rest = body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let isWhole = false;
  while (!isWhole && bytes <= HASHED_BYTES) {
    const next = await rest.next();
    isWhole = next.done ?? false;
    if (next.done) break;
    chunks.push(next.value);
    bytes += next.value.byteLength;
  }
  return (async function* () {
    yield* chunks;
    if (!isWhole) yield* { [Symbol.asyncIterator]: () => rest };
  })();
}
