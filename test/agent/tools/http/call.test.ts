import type { ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { assistantMessage, userMessage } from "../../../../src/agent/core/message.ts";
import { createHttpTools } from "../../../../src/agent/tools/http/index.ts";
import { succeeding } from "../../../../src/agent/tools/http/registration.ts";
import { createPublicFetch } from "../../../../src/lib/ssrf-safe-fetch/index.ts";
import { play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { type Heard, httpServer, json, served, tcpServer } from "../../../support/hostile.ts";
import { answerOf, call, fetch, httpStatus, OK, registered } from "./caller.ts";

describe("a call", () => {
  test("contains the tool, its arguments, the user, the thread, the run and the tool's own headers", async () => {
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
      ...{ name: "weather", args: { city: "Oslo" }, call_id: start?.call_id },
      ...{ tenant: "acme", user: "ada" },
      ...{ run_id: expect.stringMatching(/^run_/), thread_id: expect.stringMatching(/^th_/) },
    });
    expect(heard?.headers["idempotency-key"]).toBe(`${body.run_id}:${body.call_id}`);
    expect(heard?.headers["webhook-id"]).toBe(heard?.headers["idempotency-key"]);
    expect(heard?.headers["content-type"]).toBe("application/json");
  });

  test("is signed, so its server can verify the sender and the content", async () => {
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

  test("is also signed with the previous secret for a day after the tool was registered again", async () => {
    const server = await httpServer([OK, OK]);
    const before = await registered(server.url);
    const now = await registered(server.url);
    const heardWith = async (at: number) => {
      const tools = await createHttpTools([succeeding(now, before, at)], { fetch });
      await play({ script: [{ call: [{ tool: "weather", args: { city: "Oslo" } }] }, { say: "x" }], tools });
      const heard = server.heard.at(-1);
      if (!heard) throw new Error("Nothing was called.");
      return (secret: string) =>
        new Webhook(secret).verify(heard.body, heard.headers as Record<string, string>);
    };
    const verify = await heardWith(Date.now() - 23 * 3_600_000);
    for (const { secret } of [now, before])
      expect(verify(secret)).toMatchObject({ tenant: "acme", user: "ada" });
    const later = await heardWith(Date.now() - 25 * 3_600_000);
    expect(later(now.secret)).toMatchObject({ name: "weather" });
    expect(() => later(before.secret)).toThrow(/signature/);
  });

  test("whose id cannot be a header still has a key", async () => {
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

  test("with invalid arguments is not made, and the model sees the reason", async () => {
    const server = await httpServer(OK);
    const { answer } = await call(server.url, { args: { town: "Oslo" } });
    expect(answer?.error).toBe("Invalid arguments. It has no `city`. It has an unknown key `town`.");
    expect(server.heard).toEqual([]);
  });

  test("never reaches an internal address, and the error reveals no more", async () => {
    const server = await httpServer(OK);
    const { answer } = await call(server.url, { services: { fetch: createPublicFetch() } });
    expect(answer?.error).toBe("The call to the tool's server failed: its host has no public address.");
    expect(server.heard).toEqual([]);
  });
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
  ])("is reached after its time limit if its server %s", async (_, answered) => {
    const server = await httpServer(answered);
    const { answer, outcome } = await call(server.url, { tool: { timeout_ms: 200 } });
    expect(answer?.error).toBe(
      "The tool's server did not answer within 0.2 s. The call's effect is unknown.",
    );
    expect(outcome).toMatchObject({ status: "success" });
    await expect.poll(() => server.open()).toBe(0);
  });

  test.each([
    ["says nothing", SILENT],
    ["drips", DRIPS],
    ["asks for patience", json({}, 503, { "retry-after": "5" })],
  ])("is reached immediately with the end of the run if its server %s", async (_, answered) => {
    const server = await httpServer(answered);
    const stop = new AbortController();
    // Nothing but the abort ends it within the time of a test.
    const tool = { idempotent: true, timeout_ms: 300_000 };
    const calling = call(server.url, { tool, input: { signal: stop.signal } });
    await expect.poll(() => server.heard).toHaveLength(1);
    stop.abort();
    const { outcome, answer } = await calling;
    expect(outcome).toMatchObject({ status: "cancelled" });
    expect(answer?.error).toBe("Cancelled before it finished.");
    await expect.poll(() => server.open()).toBe(0);
  });
});

test("a run never shows a tool's headers or address, even when a call fails", async () => {
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

test("a secret that an endpoint repeats is masked in its progress, results and errors", async () => {
  const secrets = { authorization: "Bearer tok-123456", "x-api-key": 'qu"oted-key' };
  const tool = { headers: secrets };
  const echo = ({ headers, path }: Heard) => `${headers.authorization} ${headers["x-api-key"]} ${path}`;
  const answers = [
    (heard: Heard) => json({ result: echo(heard) }),
    (heard: Heard) => json({ result: { sent: heard.headers } }),
    (heard: Heard) => json({ error: echo(heard) }),
    (heard: Heard) => json({ error: echo(heard) }, 500),
    (heard: Heard) => {
      const lines = [{ progress: echo(heard) }, { result: "done" }];
      return served("application/x-ndjson", lines.map((line) => JSON.stringify(line)).join("\n"));
    },
  ];
  for (const answer of answers) {
    const server = await httpServer((heard, reply) => answer(heard)(heard, reply));
    const played = await call(`${server.url}/?token=que.ry.token`, { tool });
    const shown = JSON.stringify(played);
    expect(shown).toContain("***");
    expect(shown).not.toMatch(/tok-123456|oted-key|que\.ry/);
  }
});

test("a secret that an endpoint splits across several pieces of progress is masked", async () => {
  const pieces = ["it is Bear", "er tok-12", "3456, or tok-1", "23"].map((progress) => ({ progress }));
  const lines = [...pieces, { result: "done" }].map((piece) => JSON.stringify(piece));
  const server = await httpServer(served("application/x-ndjson", lines.join("\n")));
  const { events } = await call(server.url, { tool: { headers: { authorization: "Bearer tok-123456" } } });
  const shown = dataOf(events, "on_tool_progress").map(({ output }) => output);
  expect(shown.join("")).toBe("it is ***, or tok-123");
});

test("a tool of an untrusted tenant has no more freedom than one without annotations", async () => {
  const said = [
    { read_only: true, category: "plan", requires_permission: false },
    { read_only: true, category: "read", destructive: true, requires_permission: true },
  ] as const;
  const registrations = said.map((annotations) => registered("https://a.example/", { annotations }));
  const tools = await createHttpTools(await Promise.all(registrations), { fetch });
  expect(tools.map(({ annotations }) => annotations)).toEqual([
    { readOnly: false, idempotent: true, category: "network" },
    { readOnly: false, idempotent: true, category: "network", destructive: true, requiresPermission: true },
  ]);
});

test("a tool of a trusted tenant follows its registration", async () => {
  const tools = await createHttpTools(
    [
      await registered("https://a.example/"),
      await registered("https://a.example/", {
        name: "pay",
        idempotent: true,
        annotations: { destructive: true, category: "write", requires_permission: false },
      }),
    ],
    { fetch, trustAnnotations: true },
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
