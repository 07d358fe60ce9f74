// Versions of a user's files, as `ETag`: a write that names the version which it began from overwrites no other one (RFC 9110,
// §13.1). A small file's version is its content, because two writes may share a second and a size.

import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Backend, FileStat } from "../../agent/core/backend.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";

/** A larger file is known by its size and the time of its change. */
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
  // It may grow meanwhile, or have no end.
  if (size > 0) for await (const chunk of backend.read(path, { length: size }, signal)) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return { etag: `"${createHash("sha256").update(bytes).digest("base64url")}"`, bytes };
}

/** What a write may overwrite. */
export interface Precondition {
  /** One of these versions; `any`: there must be a file. */
  readonly match?: ReadonlySet<string> | "any";
  readonly isNew: boolean;
}

/** Undefined without `If-Match` and `If-None-Match`. Throws `invalid_request` for one that is neither `*` nor versions. */
export function preconditionIn(headers: IncomingHttpHeaders): Precondition | undefined {
  const { "if-match": match, "if-none-match": none } = headers;
  if (none !== undefined && none.trim() !== "*")
    throw new AppError(
      "invalid_request",
      "`If-None-Match` must be `*`: write the file only if there is none.",
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

/** Throws `precondition_failed` when the file is not, or no longer, what the caller expects. */
export async function requireVersion(
  backend: Pick<Backend, "read" | "stat">,
  path: string,
  { match, isNew }: Precondition,
  signal: AbortSignal,
): Promise<void> {
  const stat = await backend.stat(path, signal).catch((error: unknown) => {
    if (hasCode(error, "not_found")) return undefined;
    throw error;
  });
  if (isNew && stat) throw failed(`A file already exists at \`${path}\`.`);
  if (match && !stat) throw failed(`There is no longer a file at \`${path}\`.`);
  if (!match || match === "any" || !stat) return;
  const { etag } = await versionOf(backend, stat, signal);
  if (match.has(etag)) return;
  throw failed(`\`${path}\` is no longer the version that \`If-Match\` names.`, { etag });
}

const failed = (what: string, details?: Record<string, unknown>) =>
  new AppError("precondition_failed", `${what} Nothing was written. Read it again, then decide.`, details);

/** The same bytes, once the first of them are here: who checks something then does not check it long before the write. */
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
