// Decompresses the body of an answer: some gateways compress it although the request does not ask for it.

import type { IncomingMessage } from "node:http";
import { pipeline, type Readable, type Transform } from "node:stream";
// As a whole: an older Node has no decoder for zstd, and must come as far as the error that says that it is too old.
import zlib from "node:zlib";

const { constants } = zlib;

/** A body that ends without the last bytes of its encoding is read as far as it goes. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => zlib.createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  "x-gzip": () => zlib.createGunzip({ finishFlush: constants.Z_SYNC_FLUSH }),
  deflate: () => zlib.createInflate({ finishFlush: constants.Z_SYNC_FLUSH }),
  br: () => zlib.createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH }),
  zstd: () => zlib.createZstdDecompress({ finishFlush: constants.ZSTD_e_flush }),
};

/** The body is in an encoding that its head does not say, or that nothing here can read. The message completes "The answer". */
export class EncodingError extends Error {}

/** Ends with `answer`, and ends it. Throws an `EncodingError` for an unknown encoding; emits one for bytes in another encoding. */
export function decompress(answer: IncomingMessage): Readable {
  const encoding = answer.headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return answer;
  const decoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding]?.() : undefined;
  if (!decoder) throw new EncodingError(`is compressed as \`${encoding}\`, which was not asked for`);
  const wrong = () => new EncodingError(`is not compressed as its content-encoding says (\`${encoding}\`)`);
  const destroy = decoder.destroy.bind(decoder);
  // A decoder does not say whose fault the bytes are.
  decoder.destroy = (error) => destroy(error && isOfDecoder(error) ? wrong() : error);
  pipeline(answer, decoder, () => {});
  return decoder;
}

const isOfDecoder = (error: NodeJS.ErrnoException) => /^(Z_|ZSTD|ERR__)/.test(error.code ?? "");
