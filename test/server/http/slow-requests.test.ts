import { globSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { startServer } from "../../support/server.ts";
import { sendRaw } from "./raw.ts";

const TIMEOUT_S = 0.4;
/** For what is answered before its time is over, also on a busy machine, and may only then be closed. */
const PATIENT = { request_timeout: 4 };

async function serve(limits: object = {}) {
  const config = { limits: { request_timeout: TIMEOUT_S, ...limits } };
  const { url, dir } = await startServer({ config });
  const port = Number(new URL(url).port);
  const send = (head: string, body = "") =>
    sendRaw(port, Buffer.from(`${head}\r\nHost: localhost\r\n${body}`));
  return { url, dir, port, send };
}

const HALF = "Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{";
const TIMED_OUT = { status: 408, body: expect.stringContaining("request_timeout") };

describe("a request that does not arrive", () => {
  test("completely is refused, and its connection closed", async () => {
    const { send } = await serve();
    const answer = await send("POST /threads/t/runs HTTP/1.1", HALF);
    expect(answer).toMatchObject(TIMED_OUT);
    expect(answer.body).toContain("0.4 s");
    expect(answer.headers.get("connection")).toBe("close");
  });

  test("with complete headers is refused, and its connection closed", async () => {
    const { send } = await serve();
    expect(await send("POST /threads HTTP/1.1")).toMatchObject(TIMED_OUT);
  });

  test.each([
    ["of a result that no call awaits", "POST /tool-results/x HTTP/1.1", 404],
    ["without a valid URL", "POST /threads/%zz HTTP/1.1", 400],
    ["of another site", "POST /threads HTTP/1.1\r\nSec-Fetch-Site: cross-site", 403],
  ])("after it was answered keeps no connection open: %s", async (_, head, status) => {
    const { send } = await serve(PATIENT);
    expect(await send(head, HALF)).toMatchObject({ status });
  });

  test("as a stalled upload is refused, and leaves nothing behind", async () => {
    const { send, dir } = await serve();
    expect(await send("PUT /backend/files/a HTTP/1.1", "Content-Length: 9\r\n\r\nhalf")).toMatchObject(
      TIMED_OUT,
    );
    expect(globSync("data/workspaces/*/staging/*", { cwd: dir })).toEqual([]);
  });
});

describe("an upload", () => {
  test("that is slow, but makes progress, can take longer than the limit", async () => {
    const limit = 2;
    const { url, port } = await serve({ request_timeout: limit });
    const [pieces, piece] = [10, "x".repeat(4096)];
    const began = performance.now();
    const answer = await upload(port, { pieces, piece, everyMs: (limit * 1000) / 8 });
    expect(answer).toMatch(/^HTTP\/1\.1 201 /);
    expect(performance.now() - began).toBeGreaterThan(limit * 1000);
    expect(await (await fetch(`${url}/backend/files/slow`)).text()).toBe(piece.repeat(pieces));
  });

  test("that sends a byte now and then is refused, and leaves nothing behind", async () => {
    const { port, dir } = await serve();
    const answer = await upload(port, { pieces: 1000, piece: "x", everyMs: (TIMEOUT_S * 1000) / 8 });
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(globSync("data/workspaces/*/staging/*", { cwd: dir })).toEqual([]);
  });

  test("in chunks that is too large is refused with a response", async () => {
    const { send } = await serve({ ...PATIENT, upload_bytes: 4 });
    const answer = await send(
      "PUT /backend/files/a HTTP/1.1",
      "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n",
    );
    expect(answer).toMatchObject({ status: 413, body: expect.stringContaining("payload_too_large") });
  });
});

describe("a request that expects 100-continue", () => {
  const EXPECT = "Expect: 100-continue\r\nConnection: close\r\n";

  test("is asked for its body", async () => {
    const { send } = await serve(PATIENT);
    const head = `POST /threads HTTP/1.1\r\n${EXPECT}Content-Type: application/json`;
    expect(await send(head, "Content-Length: 2\r\n\r\n{}")).toMatchObject({ status: 201 });
    expect(await send(head, "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")).toMatchObject({
      status: 201,
    });
  });

  test.each(["gzip", "identity", "chunked, gzip"])(
    "with the transfer encoding %s is refused",
    async (coding) => {
      const { send } = await serve(PATIENT);
      const head = `POST /threads HTTP/1.1\r\n${EXPECT}Transfer-Encoding: ${coding}`;
      expect(await send(head, "\r\n")).toMatchObject({ status: 400 });
    },
  );
});

interface SlowUpload {
  readonly pieces: number;
  readonly piece: string;
  readonly everyMs: number;
}

/** Sends a file piece by piece until all is sent or the connection is closed. Returns the answer. */
async function upload(port: number, { pieces, piece, everyMs }: SlowUpload): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  const answer = answerOf(socket);
  socket.write(`PUT /backend/files/slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`);
  socket.write(`Content-Length: ${pieces * piece.length}\r\n\r\n`);
  for (let sent = 0; sent < pieces && !socket.closed; sent++) {
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    socket.write(piece);
  }
  return answer;
}

/** All that comes until the connection is closed. */
function answerOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  return new Promise((resolve) => socket.on("close", () => resolve(Buffer.concat(chunks).toString())));
}
