// A thread as a store, beside a whole server.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { type Client, createClient } from "../../src/client/client.ts";
import { openThread, shown, type ThreadSnapshot } from "../../src/client/thread.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { cast, completing, delegating, TEAM } from "../support/team.ts";

async function opened(options: ServerOptions = {}, url?: string) {
  const server = url === undefined ? await startServer(options) : { url };
  const client = createClient({ baseUrl: server.url, longestPauseMs: 20 });
  const store = openThread(client, "t1");
  const snapshots: ThreadSnapshot[] = [];
  const listen = () => store.subscribe(() => void snapshots.push(store.getSnapshot()));
  const leave = listen();
  onTestFinished(leave);
  const now = store.getSnapshot;
  return { client, store, snapshots, leave, listen, now, url: server.url };
}

/** What a person reads. */
const read = ({ cells }: ThreadSnapshot) =>
  cells.flatMap((cell) => {
    if (cell.kind === "user" || cell.kind === "text") return [cell.text];
    return cell.kind === "tool" ? [`${cell.name}: ${cell.state}: ${shown(cell.output)}`] : [];
  });

/** The answer is there as well: the messages may have been read a moment before the run. */
const isOver = ({ state, run, cells }: ThreadSnapshot) =>
  state === "ready" && !run.isActive && cells.at(-1)?.kind === "text";

describe("a thread as a store", () => {
  test("begins with a missing thread, which the first message creates", async () => {
    const { store, now } = await opened({ script: [{ say: "Hello." }] });
    expect(now()).toMatchObject({ state: "loading", connection: "connecting", cells: [] });
    await expect.poll(() => now().state).toBe("missing");
    await store.send("Hi.");
    await expect.poll(() => isOver(now())).toBe(true);
    expect(read(now())).toEqual(["Hi.", "Hello."]);
    expect(now()).toMatchObject({ connection: "live", run: { phase: { name: "idle" } } });
  });

  test.each([
    ["starts a run in it", (client: Client) => client.start("t1", { input: "Hi." }), ["Hi.", "Hello."]],
    ["creates it", (client: Client) => client.threads.create({ id: "t1" }), []],
  ])("appears when another client %s", async (_, create, words) => {
    const { client, now } = await opened({ script: [{ say: "Hello." }] });
    await expect.poll(() => now().state).toBe("missing");
    await client.threads.create({ id: "another" });
    await create(client);
    await expect.poll(() => now().state).toBe("ready");
    await expect.poll(() => read(now())).toEqual(words);
  });

  test("is ready as soon as the first message is sent, even while its run waits for a slot", async () => {
    const { tool, open, entered } = gate();
    const { client, store, now } = await opened({
      ...{ script: [...gated, { say: "Hello." }], tools: [tool], agents: WITH_GATE },
      config: { limits: { runs: 1 } },
    });
    await expect.poll(() => now().state).toBe("missing");
    await client.start("another", { input: "First." });
    await entered;
    await store.send("Hi.");
    await expect.poll(() => now().state).toBe("ready");
    open();
    await expect.poll(() => read(now())).toEqual(["Hi.", "Hello."]);
  });

  test("of a missing thread appears if the thread was created during a disconnection", async () => {
    const { url } = await startServer({ script: [{ say: "Hello." }] });
    const proxy = await cuttingProxy(Number(new URL(url).port));
    onTestFinished(() => proxy.close());
    const { now } = await opened({}, `http://127.0.0.1:${proxy.port}`);
    await expect.poll(() => now().state).toBe("missing");
    proxy.silence();
    for await (const _ of createClient({ baseUrl: url }).run("t1", { input: "Hi." }));
    proxy.cutAll();
    await expect.poll(() => read(now())).toEqual(["Hi.", "Hello."]);
  });

  test("shows existing messages, then new ones regardless of who starts runs, and each message once", async () => {
    const { tool, open, entered } = gate();
    const options = { script: [{ say: "First." }, ...gated], tools: [tool], agents: WITH_GATE };
    const first = await opened(options);
    await first.store.send("one");
    await expect.poll(() => isOver(first.now())).toBe(true);
    await first.client.start("t1", { input: "two" });
    await entered;
    const second = await opened({}, first.url);
    for (const { now } of [first, second])
      await expect.poll(() => now().run.phase).toEqual({ name: "executing_tool", of: ["gate"] });
    await second.store.steer("Hurry.");
    open();
    const words = ["one", "First.", "two", "Wait.", "gate: done: open", "Hurry.", "Through."];
    for (const { now } of [first, second]) await expect.poll(() => read(now())).toEqual(words);
  });

  test("drops messages that another client replaced, keeps earlier ones, and shows both when they are restored", async () => {
    const call = [{ tool: "write_todos", args: { todos: [] } }];
    const script: Script = (_, turn) => ({ say: `Answer ${turn}.`, ...(turn === 1 ? { call } : {}) });
    const { client, store, now, url } = await opened({ script });
    await store.send("one");
    await expect.poll(() => isOver(now())).toBe(true);
    for (const input of ["two", "three"]) for await (const _ of client.run("t1", { input }));
    await expect.poll(() => [read(now()).length, isOver(now())]).toEqual([8, true]);
    const before = read(now());
    const { items } = await client.threads.messages("t1");
    const second = items.find(({ role, content }) => role === "user" && content === "two");
    await client.start("t1", { input: "other", replaces: second?.id ?? "" });
    const words = ["one", "Answer 0.", "other", "Answer 4."];
    await expect.poll(() => [read(now()), isOver(now())]).toEqual([words, true]);
    const later = await opened({}, url);
    await expect.poll(() => read(later.now())).toEqual(words);
    const [branch] = await client.threads.branches("t1");
    await client.threads.restore("t1", branch?.id ?? "");
    for (const reader of [now, later.now]) await expect.poll(() => read(reader())).toEqual(before);
  });

  test("replaces the first answer to a message with another one, even if it was opened before that", async () => {
    const { tool, open, entered } = gate();
    const options = { script: [{ say: "First." }, ...gated], tools: [tool], agents: WITH_GATE };
    const { client, store, now, url } = await opened(options);
    await store.send("Go.");
    await expect.poll(() => isOver(now())).toBe(true);
    const { items } = await client.threads.messages("t1");
    const chat = { id: "t1", trigger: "regenerate-message" };
    const messages = [{ id: items[0]?.id, role: "user", parts: [{ type: "text", text: "Go." }] }];
    const again = fetch(`${url}/ai-sdk/assistant/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...chat, messages }),
    });
    await entered;
    const later = await opened({}, url);
    await expect.poll(() => read(later.now())).toEqual(["Go.", "Wait.", "gate: open: "]);
    open();
    await (await again).text();
    for (const reader of [now, later.now])
      await expect.poll(() => read(reader())).toEqual(["Go.", "Wait.", "gate: done: open", "Through."]);
  });

  test("keeps unchanged values as the same objects", async () => {
    const script = [{ say: "First." }, { say: "one two three four", delay_ms: 30 }];
    const { store, now, snapshots } = await opened({ script });
    await expect.poll(() => now().state).toBe("missing");
    await store.send("one");
    await expect.poll(() => isOver(now())).toBe(true);
    const before = now();
    const from = snapshots.length;
    await store.send("two");
    await expect.poll(() => read(now()).at(-1)).toBe("one two three four");
    for (const { cells } of snapshots.slice(from)) expect(cells.slice(0, 2)).toEqual(before.cells);
    expect(now().cells[0]).toBe(before.cells[0]);
    expect(now().cells[1]).toBe(before.cells[1]);
    expect(now().todos).toBe(before.todos);
    expect(new Set(snapshots.map(({ cells }) => cells.at(-1))).size).toBeGreaterThan(2);
  });

  test("asks, accepts the answer, and refuses an answer to anything else", async () => {
    const { store, now } = await opened({
      script: [{ call: [{ tool: "execute", args: { command: "echo $((6 * 7))" } }] }, { say: "Thanks." }],
      agents: `agents: { assistant: { model: "scripted:test", backend: { type: local }, permissions: { rules: [{ ask: execute }] } } }`,
    });
    await expect.poll(() => now().state).toBe("missing");
    await store.send("go");
    await expect.poll(() => now().asks.length).toBe(1);
    const id = now().asks[0]?.id ?? "";
    await store.answer({ id, decision: "approve" });
    await expect.poll(() => read(now()).at(-1)).toBe("Thanks.");
    expect(now().asks).toEqual([]);
    expect(read(now())[1]).toContain("42");
    await expect(store.answer({ id, decision: "deny" })).rejects.toMatchObject({ code: "interrupt_closed" });
  });

  test("stops the run", async () => {
    const { tool, entered } = gate();
    const { store, now } = await opened({ script: gated, tools: [tool], agents: WITH_GATE });
    await expect(store.stop()).rejects.toMatchObject({ code: "run_not_active" });
    await expect.poll(() => now().state).toBe("missing");
    await store.send("go");
    await entered;
    await expect.poll(() => now().run.id).toEqual(expect.any(String));
    expect((await store.stop()).status).toBe("cancelled");
    await expect.poll(() => now().run.isActive).toBe(false);
  });

  test("shows the work of subagents within their call, as new objects after a change", async () => {
    const { url } = await startServer({
      agents: TEAM,
      script: cast({
        lead: [delegating({ agent: "coder", task: "Look" }), { say: "Done." }],
        coder: [{ say: "one two three", delay_ms: 30, ...completing("Looked.") }],
      }),
    });
    await createClient({ baseUrl: url }).threads.create({ id: "t1" });
    const { store, now, snapshots } = await opened({}, url);
    await expect.poll(() => now().state).toBe("ready");
    await store.send("go");
    await expect.poll(() => read(now()).at(-1)).toBe("Done.");
    const callIn = ({ cells }: ThreadSnapshot) => cells.find((cell) => cell.kind === "tool");
    const [agent] = callIn(now())?.agents ?? [];
    expect(agent).toMatchObject({ agent: "coder", status: "completed", summary: "Looked." });
    expect(agent).toMatchObject({ usage: { output_tokens: expect.any(Number) } });
    expect(agent?.ms).toBeGreaterThan(0);
    expect(agent?.lane.cells.map((cell) => "text" in cell && cell.text)).toContain("one two three");
    expect(new Set(snapshots.map((each) => callIn(each))).size).toBeGreaterThan(2);
  });

  test("is correct after lost connections, a deleted thread, and a time without listeners", async () => {
    const server = await startServer({ script: () => ({ say: "one two three" }) });
    const proxy = await cuttingProxy(Number(new URL(server.url).port));
    onTestFinished(() => proxy.close());
    const direct = createClient({ baseUrl: server.url });
    const { now, leave, listen } = await opened({}, `http://127.0.0.1:${proxy.port}`);
    await expect.poll(() => now().state).toBe("missing");
    leave();
    for await (const _ of direct.run("t1", { input: "first" }));
    onTestFinished(listen());
    await expect.poll(() => read(now())).toEqual(["first", "one two three"]);
    proxy.cutAll();
    await expect.poll(() => now().connection).toBe("live");
    for await (const _ of direct.run("t1", { input: "second" }));
    await expect.poll(() => read(now())).toEqual(["first", "one two three", "second", "one two three"]);
    await direct.threads.delete("t1");
    await expect.poll(() => now()).toMatchObject({ state: "missing", cells: [] });
  });

  test("of a missing thread stops following it without listeners", async () => {
    const { url } = await startServer({ script: [{ say: "Hello." }] });
    const asked: string[] = [];
    const fetching: typeof fetch = (input, init) => {
      asked.push(new URL(String(input)).pathname);
      return fetch(input, init);
    };
    const store = openThread(createClient({ baseUrl: url, fetch: fetching }), "t1");
    const leave = store.subscribe(() => {});
    await expect.poll(() => store.getSnapshot().state).toBe("missing");
    leave();
    for await (const _ of createClient({ baseUrl: url }).run("t1", { input: "Hi." }));
    expect(asked.filter((path) => path === "/threads/t1/events")).toHaveLength(1);
  });

  test("is followed until its last listener leaves", async () => {
    const { store, leave, now } = await opened({ script: [{ say: "Hello." }] });
    const listener = () => {};
    const leaves = [store.subscribe(listener), store.subscribe(listener)];
    onTestFinished(() => leaves[1]?.());
    leaves[0]?.();
    leave();
    await store.send("Hi.");
    await expect.poll(() => read(now())).toEqual(["Hi.", "Hello."]);
  });

  test("explains why it cannot be followed", async () => {
    const { url } = await startServer({ config: { auth: { scheme: "api_key" } } });
    const { now } = await opened({}, url);
    await expect.poll(() => now()).toMatchObject({ state: "failed", problem: { status: 401 } });
  });
});
