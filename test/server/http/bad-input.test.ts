import { globSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import type { App } from "../../../src/app.ts";
import { startServer } from "../../support/server.ts";

/** The head of a request, to which headers can be added. */
const HEALTH = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
const JSON_TYPE = { "content-type": "application/json" };
const run = "/threads/t1/runs";

/** Whether a client is connected. */
const isOpen = async ({ server: { server } }: App) =>
  (await promisify(server.getConnections.bind(server))()) > 0;

const ERRORS = "docs/reference/errors.md";

interface Problem {
  type: string;
  status: number;
  code: string;
  detail: string;
  instance: string;
}

async function refusal(url: string, init: RequestInit): Promise<{ response: Response; problem: Problem }> {
  const response = await fetch(url, init);
  return { response, problem: (await response.json()) as Problem };
}

describe("every refusal is a problem with the right status and a helpful sentence", () => {
  test.each<[string, string, RequestInit, number, string, RegExp]>([
    [
      "bad JSON",
      run,
      { method: "POST", headers: JSON_TYPE, body: '{"input": ' },
      400,
      "invalid_request",
      /not valid JSON/,
    ],
    ["no body", run, { method: "POST", headers: JSON_TYPE }, 400, "invalid_request", /empty/],
    [
      "another media type",
      run,
      { method: "POST", headers: { "content-type": "text/plain" }, body: "hi" },
      415,
      "unsupported_media_type",
      /application\/json/,
    ],
    [
      "a packed body",
      run,
      { method: "POST", headers: { ...JSON_TYPE, "content-encoding": "gzip" }, body: "{}" },
      415,
      "unsupported_media_type",
      /Content-Encoding: gzip/,
    ],
    ["an unknown key", run, body({ inptu: "hi" }), 400, "invalid_request", /inptu/],
    [
      "neither input nor messages",
      run,
      body({}),
      400,
      "invalid_request",
      /one of `input`, `messages` and `continue`/,
    ],
    [
      "both input and messages",
      run,
      body({ input: "a", messages: [{ role: "user", content: "b" }] }),
      400,
      "invalid_request",
      /one of `input`, `messages`/,
    ],
    [
      "an assistant message",
      run,
      body({ messages: [{ role: "assistant", content: "x" }] }),
      400,
      "invalid_request",
      /messages\[0\]\.role.*`user` or `system`/,
    ],
    [
      "a tool message",
      run,
      body({ messages: [{ role: "tool", content: "x", tool_call_id: "c", name: "n" }] }),
      400,
      "invalid_request",
      /messages\[0\]/,
    ],
    [
      "empty content",
      run,
      body({ messages: [{ role: "user", content: "  " }] }),
      400,
      "invalid_request",
      /messages\[0\]\.content.*empty/,
    ],
    [
      "more than a hundred messages",
      run,
      body({ messages: Array(101).fill({ role: "user", content: "x" }) }),
      400,
      "invalid_request",
      /messages.*100/,
    ],
    ["an empty list of messages", run, body({ messages: [] }), 400, "invalid_request", /messages/],
    ["an unknown agent", run, body({ input: "x", agent: "stranger" }), 400, "invalid_request", /stranger/],
    [
      "a script that is not shipped",
      run,
      body({ input: "x", model: "scripted:/etc/passwd" }),
      400,
      "invalid_request",
      /provider:model/,
    ],
    [
      "a bad thread id",
      "/threads/a%2Fb/runs",
      body({ input: "x" }),
      400,
      "invalid_request",
      /thread_id.*A-Z/,
    ],
    [
      "a thread id that is too long",
      `/threads/${"a".repeat(129)}/runs`,
      body({ input: "x" }),
      400,
      "invalid_request",
      /128/,
    ],
    [
      "a temperature out of range",
      run,
      body({ input: "x", temperature: 9 }),
      400,
      "invalid_request",
      /temperature/,
    ],
    ["a wrong choice", run, body({ input: "x", on_busy: "queue" }), 400, "invalid_request", /on_busy/],
    [
      "metadata that is too deep",
      run,
      body({ input: "x", metadata: { a: { b: 1 } } }),
      400,
      "invalid_request",
      /metadata/,
    ],
    [
      "a huge body",
      run,
      body({ input: "x".repeat(2 << 20) }),
      413,
      "payload_too_large",
      /larger than .*1048576 bytes/,
    ],
    ["a thread that is not there", "/threads/nope", {}, 404, "not_found", /no thread `nope`/],
    ["a run that is not there", "/threads/t1/runs/run_x", {}, 404, "not_found", /no run `run_x`/],
    ["an id longer than any", `/threads/${"a".repeat(5000)}`, {}, 404, "not_found", /longer than any id/],
    ["a route that is not there", "/thread/x", {}, 404, "not_found", /GET \/thread\/x/],
    ["an unknown query key", "/threads?limt=3", {}, 400, "invalid_request", /limt/],
    ["a limit out of range", "/threads?limit=0", {}, 400, "invalid_request", /limit/],
    ["a broken page cursor", "/threads?cursor=%00%ff", {}, 400, "invalid_request", /./],
  ])("%s", async (_, path, init, status, code, detail) => {
    const { url } = await startServer();
    const { response, problem } = await refusal(url + path, init);
    expect(problem).toMatchObject({ status, code });
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    expect(problem.detail).toMatch(detail);
    expect(problem.instance).not.toContain("?");
    expect(problem.type).toBe(`${packageJson.homepage}/blob/main/${ERRORS}#${code}`);
    expect(readFileSync(ERRORS, "utf8")).toContain(`\n### ${code}\n`);
  });

  test("prototype keys in a body change nothing", async () => {
    const { url } = await startServer();
    const body = '{"input":"x","__proto__":{"polluted":true}}';
    const response = await fetch(url + run, { method: "POST", headers: JSON_TYPE, body });
    expect(response.status).toBe(400);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test("a refused run leaves no thread behind", async () => {
    const { url } = await startServer();
    await fetch(url + run, body({ input: "x", agent: "stranger" }));
    expect((await fetch(`${url}/threads/t1`)).status).toBe(404);
  });

  test("a cursor of another run is refused", async () => {
    const { url } = await startServer();
    const response = await fetch(url + run, body({ input: "x" }));
    await response.text();
    const events = url + response.headers.get("location");
    const { problem } = await refusal(events, { headers: { "last-event-id": "run_other:1-3" } });
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    const beyond = await refusal(`${events}?after=9999`, {});
    expect(beyond.problem).toMatchObject({ status: 410, code: "events_expired" });
  });

  test("a body that is nested too deeply is refused", async () => {
    const { url } = await startServer();
    const deep = (depth: number) => `{"metadata":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
    for (const depth of [64, 100_000]) {
      const init = { method: "POST", headers: JSON_TYPE, body: deep(depth) };
      expect((await refusal(`${url}/threads`, init)).problem).toMatchObject({
        ...{
          status: 400,
          code: "invalid_request",
          detail: expect.stringContaining("nested more than 64 levels deep"),
        },
      });
    }
    const init = { method: "POST", headers: JSON_TYPE, body: deep(63) };
    expect((await refusal(`${url}/threads`, init)).problem.detail).toContain("metadata");
  });

  test("a connection carries one response for each request", async () => {
    const { url } = await startServer();
    const head = "POST /threads/%zz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    const text = await rawAnswer(url, `${head}no chunk\r\n`);
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
  });

  test("a client that disconnects during an upload logs no error", async () => {
    const log: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line: string) => log.push(line) });
    const { url, app, dir } = await startServer({ logger });
    const { port } = new URL(url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write("PUT /backend/files/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
    const unfinished = () => globSync("data/workspaces/*/staging/*", { cwd: dir });
    await expect.poll(() => unfinished()).toHaveLength(1);
    socket.destroy();
    await expect.poll(() => unfinished()).toEqual([]);
    await app.close();
    expect(log).toEqual([]);
  });

  test("a page whose host was rebound to this server's address is refused", async () => {
    const { url } = await startServer();
    const status = await rawStatus(
      url,
      "GET /agents HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    expect(status).toBe(403);
  });

  test("a request with two hosts is refused, because a gateway may use the other one", async () => {
    const { url } = await startServer();
    const twice = "GET /agents HTTP/1.1\r\nHost: localhost\r\nhOST: localhost\r\nConnection: close\r\n\r\n";
    expect(await rawAnswer(url, twice)).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*The request has 2 `Host` headers\. Send exactly one\./,
    );
    expect(await rawStatus(url, twice.replace("hOST", "X-Host"))).toBe(200);
  });

  test("a page of another site can read nothing and change nothing", async () => {
    const { url } = await startServer();
    const post = (site: string) =>
      fetch(`${url}/threads`, { method: "POST", headers: { "sec-fetch-site": site } });
    expect((await post("cross-site")).status).toBe(403);
    expect((await post("same-site")).status).toBe(403);
    expect((await post("same-origin")).status).toBe(201);
    const from = (path: string, origin: string) => fetch(url + path, { method: "POST", headers: { origin } });
    expect((await from("/threads", "https://evil.example")).status).toBe(403);
    expect((await from("/backend/restart", "null")).status).toBe(403);
    expect((await from("/threads", url)).status).toBe(201);
    expect((await fetch(`${url}/threads`)).headers.get("access-control-allow-origin")).toBeNull();
  });

  test("bytes that are not HTTP get a problem too", async () => {
    const { url } = await startServer();
    expect(await rawStatus(url, "hello?\r\n\r\n")).toBe(400);
    const huge = `GET / HTTP/1.1\r\nHost: localhost\r\nX-Huge: ${"x".repeat(40_000)}\r\n\r\n`;
    expect(await rawStatus(url, huge)).toBe(431);
    const { problem } = await refusal(`${url}/threads/%zz`, {});
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
  });

  test.each([
    ["without a host", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 400, /no `Host` header/],
    ["that expects something else", `${HEALTH}Expect: 200-ok\r\n\r\n`, 417, /`Expect`/],
    ["for a tunnel", "CONNECT other:443 HTTP/1.1\r\nHost: other\r\n\r\n", 405, /not a proxy/],
    ["of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, /not a valid HTTP request/],
    ["in TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, /not a valid HTTP request/],
    [
      "with two lengths",
      `${HEALTH}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
      /not a valid HTTP request/,
    ],
    ["of an unknown method", HEALTH.replace("GET", "FROB"), 400, /not a valid HTTP request/],
    ["with very many headers", `${HEALTH}${"X: y\r\n".repeat(9_000)}\r\n`, 431, /headers are larger/],
  ] as const)(
    "a request %s gets a problem, and its connection is closed",
    async (_, bytes, status, detail) => {
      const { url } = await startServer();
      const answer = await rawAnswer(url, bytes);
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer).toMatch(/content-type: application\/problem\+json/i);
      expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({
        status,
        code: expect.stringMatching(/^(invalid_request|method_not_allowed)$/),
        detail: expect.stringMatching(detail),
      });
    },
  );

  test.each([
    ["/threads", "problem\\+json"],
    ["/v1/conversations", "json"],
    ["/langgraph/threads", "problem\\+json"],
  ])(
    "a request to %s that arrives while the server closes is refused with `shutting_down`, without a logged error, and can be sent again",
    async (path, type) => {
      const lines: string[] = [];
      const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
      const { url, app } = await startServer({ logger });
      // That wire is loaded, and others are not.
      await rawAnswer(url, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      await expect.poll(() => isOpen(app)).toBe(false);
      const { port } = new URL(url);
      const socket = connect(Number(port), "127.0.0.1");
      const answer = text(socket);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n`);
      await expect.poll(() => isOpen(app)).toBe(true);
      const closed = app.close();
      await expect.poll(() => fetch(`${url}/health`).then(String, () => "refused")).toBe("refused");
      socket.end("Content-Length: 0\r\n\r\n");
      expect(await answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*"code":"shutting_down"/);
      expect(await answer).toMatch(/\r\nconnection: close\r\n/i);
      expect(await answer).toMatch(/\r\nretry-after: \d+\r\n/i);
      expect(await answer).toMatch(new RegExp(`\r\ncontent-type: application/${type}`, "i"));
      await closed;
      expect(lines).toEqual([]);
    },
  );

  test.each(["constructor", "__proto__", "toString"])(
    "a documentation page called %s does not exist",
    async (name) => {
      const { url } = await startServer();
      expect((await fetch(`${url}/docs/${name}`)).status).toBe(404);
      expect((await fetch(`${url}/health`)).status).toBe(200);
    },
  );

  test("a POST that names a run rejoins it or is refused: it never starts another", async () => {
    const { url } = await startServer();
    const again = (cursor: string) =>
      refusal(url + run, { ...body({ input: "x" }), headers: { ...JSON_TYPE, "last-event-id": cursor } });
    expect((await again("run_nope:1-3")).problem).toMatchObject({ status: 410, code: "events_expired" });
    expect((await again("garbage")).problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect((await fetch(`${url}/threads/t1`)).status).toBe(404);
  });
});

function body(value: unknown): RequestInit {
  return { method: "POST", headers: JSON_TYPE, body: JSON.stringify(value) };
}

/** The status of a request written by hand. */
const rawStatus = async (url: string, request: string) =>
  Number((await rawAnswer(url, request)).split(" ")[1]);

/** All that comes until the connection is closed. */
function rawAnswer(url: string, request: string): Promise<string> {
  const { port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(request));
    let text = "";
    socket.on("data", (chunk) => (text += String(chunk)));
    // A server that has refused need not read the rest. The answer has arrived by then.
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
}
