import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { describe, expect, test, vi } from "vitest";
import { assistantMessage, userMessage } from "../../../src/core/message.ts";
import { hostList } from "../../../src/lib/host-list.ts";
import { createPublicFetch } from "../../../src/lib/public-fetch.ts";
import { createHttpTools } from "../../../src/tools/http/index.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { type Heard, httpServer, json, tcpServer } from "../../support/hostile.ts";
import { answerOf, call, fetch, registered } from "./caller.ts";

const OK = json({ result: "4 degrees" });
const outputs = (played: Awaited<ReturnType<typeof call>>) =>
  dataOf(played.events, "on_tool_progress").map(({ output }) => output);

describe("a call", () => {
  test("says what is called, by whom and for whom", async () => {
    const server = await httpServer(OK);
    const headers = { authorization: "Bearer key", "x-team": "weather" };
    const { answer, outcome, events } = await call(`${server.url}/tools/weather?v=1`, { tool: { headers } });
    expect(answer).toMatchObject({ content: "4 degrees", name: "weather" });
    expect(answer?.error).toBeUndefined();
    expect(outcome).toMatchObject({ status: "success" });
    const [heard] = server.heard;
    const [start] = dataOf(events, "on_tool_start");
    const body = JSON.parse(heard?.body ?? "");
    expect(heard).toMatchObject({ method: "POST", path: "/tools/weather?v=1", headers });
    expect(body).toEqual({
      ...{ name: "weather", args: { city: "Oslo" }, call_id: start?.call_id, user: "ada" },
      ...{ run_id: expect.stringMatching(/^run_/), thread_id: expect.stringMatching(/^th_/) },
    });
    expect(heard?.headers["idempotency-key"]).toBe(`${body.run_id}:${body.call_id}`);
    expect(heard?.headers["webhook-id"]).toBe(heard?.headers["idempotency-key"]);
    expect(heard?.headers["content-type"]).toBe("application/json");
  });

  test("is signed, so that its server knows that nobody else made it up or changed it", async () => {
    const server = await httpServer(OK);
    const tool = await registered(server.url);
    const tools = await createHttpTools([tool], { fetch });
    await play({
      script: [{ call: [{ tool: "weather", args: { city: "Zürich 🌦" } }] }, { say: "x" }],
      tools,
    });
    const [heard] = server.heard;
    if (!heard) throw new Error("Nothing was called.");
    const verify = ({ body, headers }: Heard, secret = tool.secret) =>
      new Webhook(secret).verify(body, headers as Record<string, string>);
    expect(verify(heard)).toMatchObject({ args: { city: "Zürich 🌦" } });
    const changed: Heard[] = [
      { ...heard, body: heard.body.replace("ada", "eve") },
      { ...heard, headers: { ...heard.headers, "webhook-id": "other" } },
      { ...heard, headers: { ...heard.headers, "webhook-timestamp": "1700000000" } },
    ];
    for (const each of changed) expect(() => verify(each)).toThrow();
    expect(() => verify(heard, "whsec_b3RoZXI=")).toThrow(/signature/);
  });

  test("whose id could not stand in a header has a key nevertheless", async () => {
    const server = await httpServer(OK);
    const [tool] = await createHttpTools([await registered(server.url)], { fetch });
    for (const id of ["a\r\nx-evil: 1", "ü", "a.b", "x".repeat(5000)]) {
      const calling = assistantMessage("", { id, name: "weather", args: { city: "Oslo" } });
      const played = await play({
        ...{ say: null, script: [{ say: "done" }], tools: tool ? [tool] : [] },
        input: { messages: [userMessage("hello"), calling] },
      });
      expect(answerOf(played)).toMatchObject({ content: "4 degrees", tool_call_id: id });
    }
    const keys = server.heard.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(4);
    for (const key of keys) expect(key).toMatch(/^run_\w+:[\w-]{43}$/);
    expect(server.heard.map(({ headers }) => headers["x-evil"])).toEqual(Array(4).fill(undefined));
  });

  test("with arguments that do not fit is not made, and the model is told why", async () => {
    const server = await httpServer(OK);
    const { answer } = await call(server.url, { args: { town: "Oslo" } });
    expect(answer?.error).toBe("Invalid arguments. It has no `city`. It has an unknown key `town`.");
    expect(server.heard).toEqual([]);
  });

  test("never leads inside, and says no more than that", async () => {
    const server = await httpServer(OK);
    const { answer } = await call(server.url, { services: { fetch: createPublicFetch() } });
    expect(answer?.error).toBe("The call of the tool's server failed: its host has no public address.");
    expect(server.heard).toEqual([]);
  });
});

describe("an answer", () => {
  test.each([
    ["text", { result: "4 degrees" }, "4 degrees"],
    ["an object", { result: { degrees: 4 } }, '{"degrees":4}'],
    ["a list", { result: [1, "a"] }, '[1,"a"]'],
    ["a number", { result: 0 }, "0"],
    ["a Boolean", { result: false }, "false"],
    ["null", { result: null }, "null"],
    ["no text", { result: "" }, ""],
    ["a result and an error that is none", { result: "fine", error: "" }, "fine"],
    ["a result and no error", { result: "fine", error: null }, "fine"],
  ])("may be %s", async (_, reply, content) => {
    const { answer } = await call((await httpServer(json(reply))).url);
    expect(answer).toMatchObject({ content });
    expect(answer?.error).toBeUndefined();
  });

  test.each([
    [{ error: "No such city." }, "No such city.", ""],
    [{ error: { code: 7 } }, '{"code":7}', ""],
    [{ error: "Half done.", result: [1] }, "Half done.", "[1]"],
  ])("may be a failure: %j", async (reply, error, content) => {
    const { answer, outcome } = await call((await httpServer(json(reply))).url);
    expect(answer).toMatchObject({ error, content });
    expect(outcome).toMatchObject({ status: "success" });
  });

  test("may say nothing", async () => {
    const { answer } = await call((await httpServer((_, response) => response.writeHead(204).end())).url);
    expect(answer).toMatchObject({ content: "The tool is done. It had nothing to say." });
  });

  const body = (type: string, text: string | Buffer) =>
    httpServer((_, response) => response.writeHead(200, { "content-type": type }).end(text));

  test.each([
    ["another type", "text/html; charset=utf-8", "<p>", "the answer is text/html, not application/json"],
    ["a nonsense type", "\u00e9vil", "{}", "the answer is something, not application/json"],
    ["broken JSON", "application/json", '{"result":', "the answer is not valid JSON"],
    ["no JSON", "application/json", "", "the answer is not valid JSON"],
    [
      "something else",
      "application/json",
      '{"output": 1}',
      "the answer has neither a `result` nor an `error`",
    ],
    ["a list", "application/json", "[]", "the answer has neither a `result` nor an `error`"],
    ["null", "application/json", "null", "the answer has neither a `result` nor an `error`"],
    ["an inherited result", "application/json", '{"__proto__": {"result": 1}}', "the answer has neither"],
    [
      "too much",
      "application/json",
      `{"result": "${"x".repeat(1_100_000)}"}`,
      "the answer is larger than 1024 KiB",
    ],
  ])("of %s is a failed call", async (_, type, text, sentence) => {
    const { answer } = await call((await body(type, text)).url);
    expect(answer?.error).toContain(`The call of the tool's server failed: ${sentence}`);
  });

  test("that is nested too deeply to be shown is not", async () => {
    const deep = `{"result": ${"[".repeat(400_000)}${"]".repeat(400_000)}}`;
    const { answer } = await call((await body("application/json", deep)).url);
    expect(answer).toMatchObject({ content: "(nested too deeply to be shown)" });
  });

  test("without a type, or of a type like JSON, is believed to be JSON", async () => {
    const untyped = await httpServer((_, response) => response.end('{"result": 1}'));
    expect((await call(untyped.url)).answer).toMatchObject({ content: "1" });
    const typed = await body("application/problem+json", '{"result": 2}');
    expect((await call(typed.url)).answer).toMatchObject({ content: "2" });
  });

  test.each([
    ["what went wrong", json({ error: "Out of order." }, 500), "answered with HTTP 500: Out of order."],
    ["no more than needed", json({ error: "x".repeat(9000) }, 400), `HTTP 400: ${"x".repeat(2000)}`],
    ["nothing of a page", httpStatus(404, "<p>secret page"), "The tool's server answered with HTTP 404"],
    [
      "nothing of where a redirect leads",
      httpStatus(302, ""),
      "answered with a redirect (HTTP 302), and none",
    ],
  ])("with another status tells the model %s", async (_, answered, sentence) => {
    const { answer } = await call((await httpServer(answered)).url);
    expect(answer?.error).toContain(sentence);
    expect(answer?.error).not.toMatch(/secret|127\.0\.0\.1|x{2001}/);
  });
});

function httpStatus(status: number, text: string) {
  return (_: Heard, response: ServerResponse) =>
    response
      .writeHead(status, { "content-type": "text/html", location: "http://127.0.0.1/secret" })
      .end(text);
}

describe("progress", () => {
  const lines = (type: string, parts: readonly string[]) =>
    httpServer(async (_, response) => {
      response.writeHead(200, { "content-type": type });
      for (const part of parts) await new Promise((resolve) => response.write(part, resolve));
      response.end();
    });

  test.each([
    [
      "lines",
      "application/x-ndjson; charset=utf-8",
      ['{"progress": "a third"}\n{"pro', 'gress": {"done": 2}}\r\n\n', '{"note": 1}\n{"result": "all"}'],
    ],
    [
      "server-sent events",
      "text/event-stream",
      [
        ': hello\n\ndata: {"progress": "a third"}\n\n',
        'event: x\ndata: {"progress":\ndata: {"done": 2}}\n\n',
        'data: {"result": "all"}\n\n',
      ],
    ],
  ])("comes as %s before the result", async (_, type, parts) => {
    const played = await call((await lines(type, parts)).url);
    expect(outputs(played)).toEqual(["a third", '{"done":2}']);
    expect(played.answer).toMatchObject({ content: "all" });
  });

  test("is shown while the tool works", async () => {
    const shown = Promise.withResolvers<void>();
    const server = await httpServer(async (_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write('{"progress": "half"}\n');
      await shown.promise;
      response.end('{"result": "all"}\n');
    });
    const onEvent = ({ event }: { event: string }) => event === "on_tool_progress" && shown.resolve();
    expect((await call(server.url, { onEvent })).answer).toMatchObject({ content: "all" });
  });

  test("after the result is not waited for", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      response.write('{"result": "all"}\n{"progress": "more"}\n');
    });
    const played = await call(server.url);
    expect(played.answer).toMatchObject({ content: "all" });
    expect(outputs(played)).toEqual([]);
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test("may end in a failure", async () => {
    const server = await lines("application/x-ndjson", ['{"progress": "half"}\n', '{"error": "No."}\n']);
    expect((await call(server.url)).answer).toMatchObject({ error: "No." });
  });

  test.each([
    ["ends without a result", ['{"progress": "half"}\n'], "the answer ended before there was"],
    ["is not JSON", ["hello\n"], "the answer is not valid JSON"],
    [
      "has a line without end",
      Array(30).fill("x".repeat(65_536)),
      "a part of the answer is longer than 1024 KiB",
    ],
  ])("that %s is a failed call", async (_, parts, sentence) => {
    for (const type of ["application/x-ndjson", "text/event-stream"]) {
      const framed = type === "text/event-stream" ? parts.map((part) => asEvent(part)) : parts;
      const { answer } = await call((await lines(type, framed)).url);
      expect(answer?.error).toContain(sentence);
    }
  });

  test("without end is cut off, and only its beginning is shown", async () => {
    const server = await httpServer((_, response) => {
      response.writeHead(200, { "content-type": "application/x-ndjson" });
      const more = () => {
        while (!response.destroyed && response.write('{"progress": "x"}\n'.repeat(3000))) {}
      };
      response.on("drain", more);
      more();
    });
    const played = await call(server.url);
    expect(outputs(played)).toHaveLength(1000);
    expect(played.answer?.error).toContain("the answer is larger than 4096 KiB");
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });
});

const asEvent = (part: string) => (part.endsWith("\n") ? `data: ${part}\n` : part);

describe("another try", () => {
  const FAILS = json({ error: "Busy." }, 503);
  const BREAKS = (_: Heard, response: ServerResponse) => response.socket?.resetAndDestroy();

  test.each([
    ["a busy server", FAILS],
    ["a connection that broke", BREAKS],
    ["too many calls", json({}, 429)],
  ])("follows %s, if the tool may be repeated, with the same key and body", async (_, first) => {
    for (const tool of [{ idempotent: true }, { annotations: { read_only: true } }]) {
      const server = await httpServer([first, OK]);
      expect((await call(server.url, { tool })).answer).toMatchObject({ content: "4 degrees" });
      const [one, two] = server.heard;
      expect(server.heard).toHaveLength(2);
      expect(two?.headers["idempotency-key"]).toBe(one?.headers["idempotency-key"]);
      expect(two?.body).toBe(one?.body);
    }
  });

  test.each([
    ["a busy server", FAILS, "The tool's server answered with HTTP 503: Busy."],
    ["a connection that broke", BREAKS, "What the call did is not known."],
  ])("never follows %s, if the tool may not be repeated", async (_, first, sentence) => {
    const server = await httpServer([first, OK]);
    expect((await call(server.url)).answer?.error).toContain(sentence);
    expect(server.heard).toHaveLength(1);
  });

  test("is not made of what its server has decided", async () => {
    const server = await httpServer([json({ error: "Bad." }, 500), OK]);
    const { answer } = await call(server.url, { tool: { idempotent: true } });
    expect(answer?.error).toContain("HTTP 500: Bad.");
    expect(server.heard).toHaveLength(1);
  });

  test("is made three times at the most", async () => {
    const server = await httpServer(FAILS);
    const { answer } = await call(server.url, { tool: { idempotent: true } });
    expect(answer?.error).toContain("HTTP 503");
    expect(server.heard).toHaveLength(3);
  });

  test("follows where nothing had been sent, whatever the tool", async () => {
    const server = await httpServer(OK);
    let connected = 0;
    const flaky = createPublicFetch({
      allow: hostList("tool.internal"),
      // Port and all the same, but nobody there the first time: 127.0.0.2 is this machine too.
      resolve: async () => [connected++ === 0 ? "127.0.0.2" : "127.0.0.1"],
    });
    const url = `http://tool.internal:${server.port}/`;
    expect((await call(url, { services: { fetch: flaky } })).answer).toMatchObject({ content: "4 degrees" });
    expect(connected).toBe(2);
  });

  test("waits as long as it is told to", async () => {
    const server = await httpServer([json({}, 429, { "retry-after": "1" }), OK]);
    const started = performance.now();
    expect((await call(server.url, { tool: { idempotent: true } })).answer).toMatchObject({
      content: "4 degrees",
    });
    expect(performance.now() - started).toBeGreaterThan(990);
  });

  test.each(["60", new Date(Date.now() + 60_000).toUTCString()])(
    "is not waited for beyond the call's time: %s",
    async (after) => {
      const server = await httpServer([json({ error: "Later." }, 429, { "retry-after": after }), OK]);
      const { answer } = await call(server.url, { tool: { idempotent: true, timeout_ms: 20_000 } });
      expect(answer?.error).toContain("HTTP 429: Later.");
      expect(server.heard).toHaveLength(1);
    },
  );
});

describe("the end of a call", () => {
  const SILENT = () => {};
  const DRIPS = (_: Heard, response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    const drip = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(drip));
  };

  test.each([
    ["says nothing", SILENT],
    ["drips", DRIPS],
  ])("comes when its time is over, if its server %s", async (_, answered) => {
    const server = await httpServer(answered);
    const { answer, outcome } = await call(server.url, { tool: { timeout_ms: 200 } });
    expect(answer?.error).toBe(
      "The tool's server did not answer within 0.2 s. What the call did is not known.",
    );
    expect(outcome).toMatchObject({ status: "success" });
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });

  test.each([
    ["says nothing", SILENT],
    ["drips", DRIPS],
    ["asks for patience", json({}, 503, { "retry-after": "5" })],
  ])("comes with the run's, at once, if its server %s", async (_, answered) => {
    const server = await httpServer(answered);
    const stop = new AbortController();
    const calling = call(server.url, { tool: { idempotent: true }, input: { signal: stop.signal } });
    await vi.waitFor(() => expect(server.heard).toHaveLength(1));
    const aborted = performance.now();
    stop.abort();
    const { outcome, answer } = await calling;
    expect(performance.now() - aborted).toBeLessThan(900); // a tool that does not answer is given up after 1000
    expect(outcome).toMatchObject({ status: "cancelled" });
    expect(answer?.error).toBe("Cancelled before it finished.");
    await vi.waitFor(() => expect(server.open()).toBe(0));
  });
});

test("no header and no address of a tool is in what a run says, whatever went wrong", async () => {
  const secrets = ["Bearer s3cret", "q=s3cret"];
  const servers = [
    await httpServer(json({ error: "x" }, 500)),
    await httpServer(httpStatus(302, "")),
    await httpServer((_, response) => response.socket?.destroy()),
    await tcpServer((socket) => socket.end("garbage")),
    { url: "http://127.0.0.1:1" },
    { url: "http://10.0.0.1" },
    { url: "https://no-such-host.invalid" },
  ];
  for (const { url } of servers) {
    const played = await call(`${url}/?q=s3cret`, {
      tool: { headers: { authorization: secrets[0] }, timeout_ms: 2000 },
    });
    expect(played.answer?.error, url).toBeDefined();
    expect(JSON.stringify(played)).not.toMatch(/s3cret|127\.0\.0\.1|10\.0\.0\.1|whsec_/);
  }
});

test("a tool is what its registration says", async () => {
  const tools = await createHttpTools(
    [
      await registered("https://a.example/"),
      await registered("https://a.example/", {
        name: "pay",
        idempotent: true,
        annotations: { destructive: true, category: "write", requires_permission: false },
      }),
    ],
    { fetch },
  );
  expect(tools).toMatchObject([
    {
      name: "weather",
      description: "Says the weather.",
      annotations: { readOnly: false, idempotent: false, category: "network" },
    },
    {
      name: "pay",
      annotations: { idempotent: true, destructive: true, category: "write", requiresPermission: false },
    },
  ]);
  expect(tools[0]?.parameters).toMatchObject({ required: ["city"] });
});
