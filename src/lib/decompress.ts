// Decompresses response bodies. Some gateways compress responses even though the request does not ask for it.

import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, type Transform } from "node:stream";
// Imports the whole module, because an older Node lacks the zstd decoder but must still start far enough to report that
// it is too old.
import zlib from "node:zlib";

const { constants } = zlib;

/** Decoders that accept a body without the last bytes of its encoding. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => zlib.createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  "x-gzip": () => zlib.createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  deflate: () => zlib.createInflate({ finishFlush: constants.Z_SYNC_FLUSH }),
  br: () => zlib.createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => zlib.createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
};

/** Thrown if the body's encoding is unknown or differs from its header. The message completes "The answer". */
export class EncodingError extends Error {}

/**
 * Returns the decoded body. Ending it also ends `answer`, and vice versa. Throws an `EncodingError` for an unknown
 * encoding. The body emits an `EncodingError` if its bytes have a different encoding.
 */
export function decompress(answer: IncomingMessage): Readable {
  return decompressed(answer, answer.headers["content-encoding"]);
}

/** Like `decompress`, but for a body whose header is known. */
export function decompressed(body: Readable, header = ""): Readable {
  const encoding = header.trim().toLowerCase();
  if (encoding === "" || encoding === "identity") return body;
  const decoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding]?.() : undefined;
  if (!decoder) throw new EncodingError(`is compressed as \`${encoding}\`, which was not requested`);
  const wrong = () => new EncodingError(`does not match its content-encoding (\`${encoding}\`)`);
  const destroy = decoder.destroy.bind(decoder);
  // A decoder's error does not show whether the bytes or the decoder failed.
  decoder.destroy = (error) => destroy(error && isOfDecoder(error) ? wrong() : error);
  pipeline(body, decoder, () => {});
  return decoder;
}

const isOfDecoder = (error: NodeJS.ErrnoException) => /^(Z_|ZSTD|ERR__)/.test(error.code ?? "");
