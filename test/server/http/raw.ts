// Requests as bytes: what no client library would send.

import { connect } from "node:net";

export interface RawAnswer {
  /** 0 when the connection ended without an answer. */
  readonly status: number;
  /** Names in small letters. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

const MAX_WAIT_MS = 60_000;

/**
 * Sends `bytes`, ends its side if `isOver`, and resolves with the answer; an event stream is left after its head. Rejects
 * when nothing more comes for a minute.
 */
export function sendRaw(port: number, bytes: Buffer, isOver = false): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.setTimeout(MAX_WAIT_MS, () => {
      socket.destroy();
      reject(new Error(`No answer to ${JSON.stringify(bytes.subarray(0, 2_000).toString("latin1"))}`));
    });
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      if (chunks.length === 1 && /\r\ncontent-type: text\/event-stream/i.test(chunk.toString("latin1")))
        socket.destroy();
    });
    // A server that has refused need not read the rest.
    socket.on("error", () => {});
    socket.on("close", () => resolve(answerIn(Buffer.concat(chunks).toString("latin1"))));
    if (isOver) socket.end(bytes);
    else socket.write(bytes);
  });
}

const GO_ON = "HTTP/1.1 100 Continue\r\n\r\n";

function answerIn(bytes: string): RawAnswer {
  const text = bytes.startsWith(GO_ON) ? bytes.slice(GO_ON.length) : bytes;
  const end = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, Math.max(0, end)).split("\r\n");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(first.split(" ")[1] ?? 0), headers, body: end < 0 ? "" : text.slice(end + 4) };
}
