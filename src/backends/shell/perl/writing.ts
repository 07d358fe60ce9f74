// Writing a file through a helper, which puts it in its place when it is whole.

import { untilAborted } from "../../../lib/abortable.ts";
import { CHUNK_BYTES } from "./bounds.ts";
import type { Link } from "./link.ts";

const ANSWER_BYTES = 1024;
const NOTHING = new Uint8Array();

/** Returns the bytes written. */
export async function writeFile(
  link: Link,
  relative: string,
  data: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  const id = link.newId();
  let written = 0;
  let isBegun = false;
  const put = async (bytes: Uint8Array, last: "0" | "1") => {
    const target = isBegun ? [] : [relative];
    const letter = isBegun ? "a" : "w";
    isBegun = true;
    const request = {
      ...{ id, letter, fields: [...target, last, bytes], maxBytes: ANSWER_BYTES },
      read() {},
    };
    await link.ask(request, signal);
    written += bytes.length;
  };

  try {
    if (data instanceof Uint8Array) await putAll(data, put, "1");
    else {
      for await (const chunk of untilAborted(data, signal)) await putAll(chunk, put, "0");
      await put(NOTHING, "1");
    }
  } catch (error) {
    if (isBegun) link.giveUp(id);
    throw error;
  }
  return written;
}

async function putAll(
  bytes: Uint8Array,
  put: (bytes: Uint8Array, last: "0" | "1") => Promise<void>,
  last: "0" | "1",
): Promise<void> {
  let at = 0;
  for (; at + CHUNK_BYTES < bytes.length; at += CHUNK_BYTES)
    await put(bytes.subarray(at, at + CHUNK_BYTES), "0");
  await put(bytes.subarray(at), last);
}
