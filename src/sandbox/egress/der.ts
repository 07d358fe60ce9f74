// Writes ASN.1 in DER (X.690), limited to the parts that one kind of certificate needs.

type Bytes = Uint8Array;

/** Encodes a value with its tag and length. */
export function tagged(tag: number, ...contents: readonly Bytes[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const digits = length.toString(16);
  const bytes = Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex");
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}

export const sequence = (...contents: readonly Bytes[]) => tagged(0x30, ...contents);
export const set = (...contents: readonly Bytes[]) => tagged(0x31, ...contents);
export const octets = (content: Bytes) => tagged(0x04, content);
export const utf8 = (text: string) => tagged(0x0c, Buffer.from(text));
export const yes = tagged(0x01, Buffer.from([0xff]));

/** Encodes a bit string. `unused` is the number of unused bits at the end. */
export const bits = (content: Bytes, unused = 0) => tagged(0x03, Buffer.from([unused]), content);

/** Encodes a positive integer, whose first byte must not be 0. */
export const integer = (bytes: Bytes) =>
  tagged(0x02, ...((bytes[0] ?? 0) >= 0x80 ? [Buffer.from([0])] : []), bytes);

/** Encodes an object identifier, such as `2.5.29.17`. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(number: number): number[] {
  const digits = [number & 0x7f];
  for (let rest = number >> 7; rest > 0; rest >>= 7) digits.unshift(0x80 | (rest & 0x7f));
  return digits;
}

/** Encodes a time before 2050 (RFC 5280, section 4.1.2.5). */
export function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x17, Buffer.from(digits.slice(2)));
}
