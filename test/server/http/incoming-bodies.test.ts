import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { startServer } from "../../support/server.ts";

const KIB = 1024;
/** The largest body, of which sixteen have room. */
const BODY_BYTES = 64 * KIB;

const headersOf = (tenant: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": "ada",
  "x-skein-scopes": "read run",
});

async function serve(auth: object = { scheme: "header", trusted_proxies: ["127.0.0.0/8"] }) {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test' } }",
    script: () => ({ say: "ok" }),
    config: { auth, limits: { body_bytes: BODY_BYTES, incoming_bytes: 16 * BODY_BYTES } },
  });
  return url;
}

interface Sender {
  readonly socket: Socket;
  /** The first answer. */
  readonly answer: Promise<string>;
}

/** Announces a body of `length` bytes, or in chunks, and sends the beginning of it. */
function half(url: string, tenant: string, length: number | "chunked" = BODY_BYTES): Sender {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const announced = length === "chunked" ? "transfer-encoding: chunked" : `content-length: ${length}`;
  const lines = [
    "POST /threads/slow/runs HTTP/1.1",
    "host: localhost",
    ...Object.entries(headersOf(tenant)).map((pair) => pair.join(": ")),
    "content-type: application/json",
    announced,
    "",
    length === "chunked" ? '8\r\n{"input"\r\n' : '{"input":"',
  ];
  socket.write(lines.join("\r\n"));
  const answer = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
  return { socket, answer };
}

/** The answers to as many senders as are refused. */
async function answersTo(senders: readonly Sender[], count: number): Promise<string[]> {
  const answers: string[] = [];
  await new Promise<void>((resolve) => {
    for (const { answer } of senders)
      void answer.then((each) => {
        if (answers.push(each) === count) resolve();
      });
  });
  return answers;
}

const run = async (url: string, tenant: string, chars: number) => {
  const response = await fetch(`${url}/threads/t/runs`, {
    method: "POST",
    headers: { ...headersOf(tenant), "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ input: "x".repeat(chars) }),
  });
  return { status: response.status, body: await response.json() };
};

describe("large bodies that a tenant sends slowly", () => {
  test("are refused above its share before they are read, and another tenant's are accepted", async () => {
    const url = await serve();
    const senders = Array.from({ length: 20 }, () => half(url, "flood"));
    const refusals = await answersTo(senders, 6);
    for (const each of refusals) {
      expect(each).toMatch(/^HTTP\/1.1 429 /);
      expect(each).toMatch(/retry-after: 1\r\n/i);
    }
    const most = 16 * BODY_BYTES;
    expect(await run(url, "flood", 48 * KIB)).toMatchObject({
      status: 429,
      body: {
        code: "limit_exceeded",
        details: { limit: "limits.incoming_bytes", of: "tenant", most, retry_after_ms: 1000 },
      },
    });
    expect(await run(url, "other", 48 * KIB)).toMatchObject({ status: 200, body: { status: "success" } });
    expect(await run(url, "flood", KIB)).toMatchObject({ status: 200 });
  });

  test("count together across all protocols", async () => {
    const url = await serve();
    await answersTo(
      Array.from({ length: 20 }, () => half(url, "flood")),
      6,
    );
    const overWire = async (tenant: string) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headersOf(tenant), "content-type": "application/json" },
        body: JSON.stringify({
          model: "assistant",
          messages: [{ role: "user", content: "x".repeat(48 * KIB) }],
        }),
      });
      await response.text();
      return response.status;
    };
    expect(await overWire("flood")).toBe(429);
    expect(await overWire("other")).toBe(200);
  });

  test("count as the largest if their length is unknown", async () => {
    const url = await serve();
    const senders = Array.from({ length: 15 }, () => half(url, "flood", "chunked"));
    expect(await answersTo(senders, 1)).toEqual([expect.stringMatching(/^HTTP\/1.1 429 /)]);
  });

  test("count until they are answered or their client has left", async () => {
    const url = await serve();
    const senders = Array.from({ length: 15 }, () => half(url, "flood"));
    await answersTo(senders, 1);
    for (const { socket } of senders) socket.destroy();
    await expect.poll(async () => (await run(url, "flood", 48 * KIB)).status).toBe(200);
    for (let n = 0; n < 20; n++) expect(await run(url, "flood", 48 * KIB)).toMatchObject({ status: 200 });
  });

  test("can use all of the limit if there are no other tenants", async () => {
    const url = await serve({ scheme: "none" });
    const senders = Array.from({ length: 17 }, () => half(url, "default"));
    expect(await answersTo(senders, 1)).toEqual([expect.stringMatching(/^HTTP\/1.1 503 /)]);
  });
});

test("a body that has started a run does not count while the run's stream is open", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test' } }",
    script: () => ({ say: "a b", delay_ms: 600_000 }),
    config: { limits: { body_bytes: BODY_BYTES, incoming_bytes: 16 * BODY_BYTES } },
  });
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const begin = (n: number, accept: string) =>
    fetch(`${url}/threads/t${n}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify({ input: "x".repeat(48 * KIB) }),
      signal: left.signal,
    });
  for (let n = 0; n < 20; n++) expect((await begin(n, "text/event-stream")).status).toBe(200);
});
