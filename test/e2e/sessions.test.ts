import { describe, expect, test } from "vitest";
import { AppError } from "../../src/agent/core/errors.ts";
import { textOf } from "../../src/agent/core/message.ts";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import type { Script, Turn } from "../../src/agent/models/scripted.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { gate, gated, heldAfter, WITH_GATE } from "../support/gate.ts";
import { requestsTo } from "../support/native.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

interface Said {
  readonly id: string;
  readonly role: string;
  readonly content: string;
  readonly error?: string;
}

async function serve(options: ServerOptions = {}) {
  const { url } = await startServer(options);
  const send = requestsTo(url);
  const wait = { accept: "application/json" };
  const run = (thread: string, body: object, headers = {}) =>
    send("POST", `/threads/${thread}/runs`, body, { ...wait, ...headers });
  const messages = async (thread: string) =>
    (await send("GET", `/threads/${thread}/messages`)).body.items as Said[];
  const texts = async (thread: string) => (await messages(thread)).map(({ content }) => content);
  return { url, send, run, messages, texts };
}

const echo: Script = ({ messages }) => ({ say: `re: ${textOf(messages.at(-1)?.content ?? "")}` });

describe("a fork", () => {
  const config = { store: "sqlite" };

  test("starts with the messages up to a given one, and continues separately", async () => {
    const { send, run, messages, texts } = await serve({ config, script: echo });
    await send("POST", "/threads", { id: "t", title: "Trip", metadata: { colour: "blue" } });
    for (const input of ["one", "two"]) await run("t", { input });
    const [, second] = await messages("t");
    const { status, body, headers } = await send("POST", "/threads/t/fork", {
      ...{ message_id: second?.id, id: "f" },
    });
    expect([status, headers.get("location")]).toEqual([201, "/threads/f"]);
    expect(body).toMatchObject({
      ...{ id: "f", title: "Trip", agent: "assistant", metadata: { colour: "blue" } },
      ...{ status: "idle", message_count: 2 },
    });
    await run("f", { input: "other" });
    expect(await texts("f")).toEqual(["one", "re: one", "other", "re: other"]);
    expect(await texts("t")).toEqual(["one", "re: one", "two", "re: two"]);
    const whole = await send("POST", "/threads/t/fork", { title: "Second try" });
    expect(whole.body).toMatchObject({ title: "Second try", message_count: 4 });
    expect(whole.body.id).toMatch(/^th_/);
    expect((await send("GET", `/threads/${whole.body.id}/runs`)).body.items).toEqual([]);
  });

  test("copies the thread's todos and files, but no open interrupts and no permissions", async () => {
    const todos = [{ id: "1", title: "Write it down", status: "done" }];
    const call = [
      { tool: "write_todos", args: { todos } },
      { tool: "write_file", args: { path: "a.txt", content: "A" } },
    ];
    const script = [
      { call },
      { call: [{ tool: "ask_user", args: { question: "Which?" } }] },
      { say: "Well." },
    ];
    const agents =
      "agents: { assistant: { model: 'scripted:test', backend: { type: local }, tools: [ask_user] } }";
    const { send, run, messages } = await serve({ config, script, agents });
    expect((await run("t", { input: "go" })).body.status).toBe("interrupted");
    expect((await send("GET", "/threads/t/interrupts")).body.items).toHaveLength(1);
    await send("POST", "/threads/t/fork", { id: "f" });
    const { body } = await send("GET", "/threads/f/state");
    expect(body).toMatchObject({ todos, files: { "/workspace/a.txt": { bytes: 1 } }, status: "idle" });
    expect(Object.keys(body).toSorted()).toEqual([
      "files",
      "messages",
      "status",
      "thread_id",
      "todos",
      "version",
    ]);
    expect((await send("GET", "/threads/f/interrupts")).body.items).toEqual([]);
    // The call in whose middle it was made is answered by the next message.
    expect((await run("f", { input: "Never mind." })).body.status).toBe("success");
    const result = (await messages("f")).findLast(({ role }) => role === "tool");
    expect(result?.error).toMatch(/^Outcome unknown: .* forked from/);
    expect((await send("GET", "/threads/t/interrupts")).body.items).toHaveLength(1);
  });
});

test("a fork has no summary, because it could contain later messages", async () => {
  const script: Script = ({ system }) => ({ say: system[0]?.id === "summarization" ? "SUMMARY" : "ok" });
  const agents = "agents: { assistant: { model: 'scripted:test', context_window: 1000 } }";
  const { send, run } = await serve({ script, agents });
  for (let nth = 0; nth < 4; nth++) await run("t", { input: "word ".repeat(200) });
  expect((await send("GET", "/threads/t/state")).body).toHaveProperty("summary");
  await send("POST", "/threads/t/fork", { id: "f" });
  expect((await send("GET", "/threads/f/state")).body).not.toHaveProperty("summary");
});

describe("a fork", () => {
  test("is refused for an unknown thread or message, and for an id that is taken", async () => {
    const { send, run } = await serve({ script: echo });
    await run("t", { input: "one" });
    expect((await send("POST", "/threads/nope/fork", {})).status).toBe(404);
    const unknown = await send("POST", "/threads/t/fork", { message_id: "msg_nope" });
    expect([unknown.status, unknown.body.detail]).toEqual([400, expect.stringContaining("`msg_nope`")]);
    expect((await send("POST", "/threads/t/fork", { id: "t" })).body.code).toBe("already_exists");
    expect((await send("GET", "/threads")).body.items).toHaveLength(1);
  });
});

describe("a run cannot replace", () => {
  test("a message of another role, or a missing one, or any later; the error lists the possible ones", async () => {
    const { run, messages, texts } = await serve({ script: echo });
    await run("t", { input: "one" });
    const [user, assistant] = await messages("t");
    for (const [replaces, words] of [
      [assistant?.id, /is of role `assistant`/],
      ["msg_nope", /no message `msg_nope`/],
    ] as const) {
      const { status, body } = await run("t", { input: "two", replaces });
      expect([status, body.code]).toEqual([400, "invalid_request"]);
      expect(body.detail).toMatch(words);
      expect(body.detail).toMatch(/must be the id of a user message in this thread/);
    }
    for (const on_busy of ["enqueue", "interrupt"]) {
      const { status, body } = await run("t", { input: "two", replaces: user?.id, on_busy });
      expect([status, body.detail]).toEqual([400, expect.stringMatching(/replaces: .*on_busy: reject/)]);
    }
    expect(await texts("t")).toHaveLength(2);
    expect((await run("new", { input: "two", replaces: user?.id })).status).toBe(400);
  });
});

describe("a title", () => {
  /** Answers runs with `ok`, and title requests with `turn`. */
  const titled = (turn: Turn, asked: ModelRequest[] = []): Script => {
    return (request) => {
      if (!request.system.some(({ id }) => id === "title")) return { say: "ok" };
      asked.push(request);
      return turn;
    };
  };

  test("is the model's short summary of the first messages, without decoration", async () => {
    const asked: ModelRequest[] = [];
    const say = `\n"Title: Two weeks in the ${"very ".repeat(30)}far North."\nAnd more.`;
    const { send, run } = await serve({ script: titled({ say }, asked) });
    await run("t", { input: `Where to? ${"x".repeat(50_000)} </conversation>` });
    const { status, body } = await send("POST", "/threads/t/title", {});
    expect(status).toBe(200);
    expect(body.title).toMatch(/^Two weeks in the very very/);
    expect(body.title.length).toBeLessThanOrEqual(80);
    expect((await send("GET", "/threads/t")).body.title).toBe(body.title);
    const prompt = JSON.stringify(asked[0]?.messages);
    expect(prompt).toContain("Where to?");
    expect(prompt.length).toBeLessThan(5_000);
    expect(asked[0]?.tools).toEqual([]);
    expect((await send("GET", "/threads/t/messages")).body.items).toHaveLength(2);
    expect((await send("GET", "/threads/t/runs")).body.items).toHaveLength(1);
  });

  test("requires at least one message", async () => {
    const { send } = await serve({ script: titled({ say: "Nothing" }) });
    await send("POST", "/threads", { id: "t" });
    const { status, body } = await send("POST", "/threads/t/title");
    expect([status, body.code, body.detail]).toEqual([
      ...[400, "invalid_request", expect.stringContaining("start a run first")],
    ]);
    expect((await send("POST", "/threads/nope/title")).status).toBe(404);
  });

  test("that the model does not return causes an error, and the old one is kept", async () => {
    const { send, run } = await serve({ script: titled({ say: " \n''" }) });
    await send("POST", "/threads", { id: "t", title: "Mine" });
    await run("t", { input: "hello" });
    expect((await send("POST", "/threads/t/title")).body.code).toBe("model_rejected");
    expect((await send("GET", "/threads/t")).body.title).toBe("Mine");
  });

  test("is ready immediately, even for a very long reply", async () => {
    const { send, run } = await serve({ script: titled({ say: `Norway${" ".repeat(200_000)}Sweden` }) });
    await run("t", { input: "hello" });
    expect((await send("POST", "/threads/t/title")).body.title).toBe("Norway");
  });

  test("is refused if no budget is left for a model call", async () => {
    const { send, run } = await serve({
      config: { quotas: { user: { tokens_per_day: 10_000 } } },
      script: () => ({ say: "ok", usage: { input_tokens: 12_000, output_tokens: 1 } }),
    });
    await run("t", { input: "hello" });
    const { status, body } = await send("POST", "/threads/t/title");
    expect([status, body.code]).toEqual([429, "limit_exceeded"]);
  });

  test("is retried like any other call", async () => {
    let calls = 0;
    const script: Script = (request) => {
      if (!request.system.some(({ id }) => id === "title")) return { say: "ok" };
      if (calls++ === 0) throw new AppError("model_overloaded", "Busy.");
      return { say: "Second try" };
    };
    const agents = "agents: { a: { model: 'scripted:test', hooks: { retry: { base_ms: 1 } } } }";
    const { send, run } = await serve({ script, agents });
    await run("t", { input: "hello" });
    expect((await send("POST", "/threads/t/title")).body.title).toBe("Second try");
  });
});

test("a thread's usage is the sum of its runs', with the cached fraction of the input", async () => {
  const used = [
    { input_tokens: 100, output_tokens: 10, cache_read_tokens: 0, cache_write_tokens: 80 },
    { input_tokens: 300, output_tokens: 20, cache_read_tokens: 200, cache_write_tokens: 5 },
  ];
  const { send, run } = await serve({ script: used.map((usage) => ({ say: "ok", usage })) });
  await send("POST", "/threads", { id: "t" });
  const none = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, runs: 0 };
  expect((await send("GET", "/threads/t/usage")).body).toEqual(none);
  for (const input of ["one", "two"]) await run("t", { input });
  expect((await send("GET", "/threads/t/usage")).body).toEqual({
    ...{ input_tokens: 400, output_tokens: 30, cache_read_tokens: 200, cache_write_tokens: 85 },
    ...{ runs: 2, cache_hit_ratio: 0.5 },
  });
  expect((await send("GET", "/threads/nope/usage")).status).toBe(404);
});

describe("the phase of a run", () => {
  test("is part of the run until it has ended", async () => {
    const { tool, open, entered } = gate();
    const { url, send } = await serve({
      config: { store: "sqlite" },
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
    });
    const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
    const waiting = await post(`${url}/threads/t/runs`, { input: "2", on_busy: "enqueue", background: true });
    await entered;
    const phaseOf = async (of: typeof viewer) =>
      (await send("GET", of.headers.get("location")?.replace("/events", "") ?? "")).body.phase;
    expect(await phaseOf(viewer)).toEqual({ name: "executing_tool", of: ["gate"] });
    expect(await phaseOf(waiting)).toEqual({ name: "idle" });
    open();
    const events = await viewer.ended();
    expect(await phaseOf(viewer)).toBeUndefined();
    expect(textSeen(events)).toBe("Wait.Through.");
    expect(dataOf(events, "done")).toHaveLength(1);
  });

  test("is read from the end of its log, however long that is", async () => {
    const { model } = heldAfter("held", [{ say: `${"word ".repeat(400)}held and over` }]);
    const { url, send } = await serve({ config: { store: "sqlite" }, model });
    const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
    await viewer.until(() => viewer.seen.length > 300);
    const { body } = await send("GET", viewer.headers.get("location")?.replace("/events", "") ?? "");
    expect(body.phase).toEqual({ name: "calling_model" });
    await send("POST", viewer.headers.get("location")?.replace("/events", "/cancel") ?? "");
    viewer.leave();
  });
});
