// Reads the server's name from the first message of a TLS connection, which is not encrypted (RFC 8446, section 4.1.2).

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const RECORD_HEAD_BYTES = 5;
const HEAD_BYTES = 4;
const MAX_RECORD_BYTES = 16 * 1024;
/** The maximum number of records that the message may consist of. */
const MAX_RECORDS = 16;
/** The maximum size of the message in bytes. Browsers send less than 2 KiB. */
const MAX_HELLO_BYTES = 16 * 1024;

/**
 * `more`: the message is not complete yet. `none`: the connection is not TLS or does not name exactly one server.
 * Otherwise, contains the name as it was sent.
 */
export type HelloName = "more" | "none" | { readonly name: string };

/** Returns the server's name. `bytes` are the first bytes of a connection. */
export function serverNameIn(bytes: Buffer): HelloName {
  const message = messageIn(bytes);
  if (typeof message === "string") return message;
  try {
    const name = nameIn(message);
    return name === undefined ? "none" : { name };
  } catch (error) {
    if (error instanceof RangeError) return "none";
    throw error;
  }
}

/** Joins the records that contain the first handshake message. */
function messageIn(bytes: Buffer): Buffer | "more" | "none" {
  let held: Buffer = Buffer.alloc(0);
  for (let at = 0, records = 0; ; records++) {
    const size = held.length < HEAD_BYTES ? undefined : HEAD_BYTES + held.readUIntBE(1, 3);
    if (size !== undefined && (held[0] !== CLIENT_HELLO || size > MAX_HELLO_BYTES)) return "none";
    if (size !== undefined && held.length >= size) return held.subarray(HEAD_BYTES, size);
    if (at >= bytes.length) return "more";
    // The first byte alone shows whether a connection is not TLS.
    if (bytes[at] !== HANDSHAKE || records === MAX_RECORDS) return "none";
    if (at + RECORD_HEAD_BYTES > bytes.length) return "more";
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at + 1] !== 3 || length === 0 || length > MAX_RECORD_BYTES) return "none";
    at += RECORD_HEAD_BYTES;
    held = Buffer.concat([held, bytes.subarray(at, at + length)]);
    at += length;
  }
}

/** Reads the name. Throws a `RangeError` if a length points past the end of the message. */
function nameIn(hello: Buffer): string | undefined {
  const read = reader(hello);
  read.skip(2 + 32);
  read.skip(read.number(1));
  read.skip(read.number(2));
  read.skip(read.number(1));
  const extensions = reader(read.take(read.number(2)));
  if (!read.isAtEnd()) return undefined;
  const names: string[] = [];
  while (!extensions.isAtEnd()) {
    const type = extensions.number(2);
    const body = extensions.take(extensions.number(2));
    if (type === SERVER_NAME) names.push(...namesIn(body));
  }
  return names.length === 1 ? names[0] : undefined;
}

function namesIn(body: Buffer): string[] {
  const outer = reader(body);
  const list = reader(outer.take(outer.number(2)));
  const names: string[] = [];
  while (!list.isAtEnd()) {
    const type = list.number(1);
    const name = list.take(list.number(2)).toString("latin1");
    // More than one entry is never valid, so an unknown type makes the name ambiguous.
    names.push(type === HOST_NAME ? name : "", ...(outer.isAtEnd() ? [] : [""]));
  }
  return names;
}

function reader(bytes: Buffer) {
  let at = 0;
  const take = (size: number): Buffer => {
    if (at + size > bytes.length) throw new RangeError("A length exceeds its message.");
    at += size;
    return bytes.subarray(at - size, at);
  };
  return {
    take,
    skip: (size: number) => void take(size),
    number: (size: number) => take(size).readUIntBE(0, size),
    isAtEnd: () => at === bytes.length,
  };
}
