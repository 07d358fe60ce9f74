// A connection to a server under test, and the consecutive runs on it. It reads the socket directly, because an HTTP
// client would cost the load generator more than the server itself spends.

import { connect, type Socket } from "node:net";
import type { Front } from "./fronts.ts";

export interface LaneRun {
  readonly tokens: number;
  readonly bytes: number;
  readonly firstEventMs: number;
  readonly firstTokenMs: number;
  readonly ms: number;
}

export interface Watch {
  /** The length of a token, needed because a server may send several tokens as one. */
  readonly length: number;
  /** Called for each token when it arrives. The token is in `text` at the position `at`. */
  onToken(text: string, at: number): void;
}

const END = "\r\n0\r\n\r\n";

export class Lane {
  readonly #port: number;
  readonly #front: Front;
  #socket: Socket | undefined;

  constructor(port: number, front: Front) {
    this.#port = port;
    this.#front = front;
  }

  /**
   * The user's messages are ASCII. Rejects unless the server accepts the run, streams it to its end and reports that it
   * is done.
   */
  async run(threadId: string, contents: readonly string[], watch: Watch): Promise<LaneRun> {
    const socket = await this.#connected();
    const front = this.#front;
    const body = JSON.stringify(front.body(threadId, contents));
    const head = `POST ${front.path(threadId)} HTTP/1.1\r\nhost: 127.0.0.1:${this.#port}\r\n${front.head(threadId)}accept: text/event-stream\r\ncontent-type: application/json`;
    const answer = read(socket, front, watch);
    socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    return answer;
  }

  close(): void {
    this.#socket?.destroy();
  }

  async #connected(): Promise<Socket> {
    if (this.#socket?.writable) return this.#socket;
    this.#socket?.destroy();
    const socket = connect(this.#port, "127.0.0.1").setNoDelay();
    this.#socket = socket;
    socket.on("error", () => {}); // ignored between runs
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return socket;
  }
}

function read(socket: Socket, { token, done, failed }: Front, watch: Watch): Promise<LaneRun> {
  const began = performance.now();
  let firstEventMs = Number.NaN;
  let firstTokenMs = Number.NaN;
  let tokens = 0;
  let bytes = 0;
  let inBody = false;
  let isDone = false;
  /** The beginning of a line or header that is not complete yet. */
  let held = "";
  let tail = "";

  const head = (text: string): string => {
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return "";
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`The server refused a run: ${text.slice(0, 1000)}`);
    inBody = true;
    held = "";
    bytes -= Buffer.byteLength(text.slice(0, end + 4), "latin1");
    return text.slice(end + 4);
  };

  const lines = (text: string): void => {
    if (Number.isNaN(firstEventMs) && text.includes("data: ")) firstEventMs = performance.now() - began;
    for (let mark = text.indexOf(token); mark !== -1; mark = text.indexOf(token, mark + token.length)) {
      if (tokens === 0) firstTokenMs = performance.now() - began;
      const end = text.indexOf('"', mark + token.length);
      for (let at = mark + token.length; at < end; at += watch.length) {
        tokens++;
        watch.onToken(text, at);
      }
    }
    if (text.includes(failed)) throw new Error(`A run failed: ${text.slice(-1000)}`);
    isDone ||= text.includes(done);
  };

  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    const news = chunk.toString("latin1");
    tail = (tail + news).slice(-END.length);
    let text = held + news;
    held = text;
    if (!inBody) text = head(text);
    if (!inBody) return;
    const end = text.lastIndexOf("\n") + 1;
    lines(text.slice(0, end));
    held = text.slice(end);
  };

  return new Promise((resolve, reject) => {
    const leave = () => socket.off("data", onData).off("close", onClose).off("error", onError);
    const fail = (error: unknown) => {
      leave();
      socket.destroy();
      reject(error);
    };
    const onError = (error: Error) => fail(error);
    const onClose = () =>
      fail(new Error(`The connection was closed in the middle of a run, after ${tokens} tokens.`));
    const onData = (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        return fail(error);
      }
      if (tail !== END) return;
      if (!isDone) return fail(new Error(`A run ended without its last event, after ${tokens} tokens.`));
      leave();
      resolve({ tokens, bytes, firstEventMs, firstTokenMs, ms: performance.now() - began });
    };
    socket.on("data", onData).on("close", onClose).on("error", onError);
  });
}
