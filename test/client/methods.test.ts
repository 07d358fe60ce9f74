// Each method of the client, asked of a whole server.

import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  blobOf,
  type Client,
  type ClientOptions,
  createClient,
  partOf,
  type RunRecord,
  type StreamEvent,
} from "../../src/client/client.ts";
import { isWirePath } from "../../src/server/config/wire-names.ts";
import { accept, callbackTool } from "../support/callback-tool.ts";
import { dataOf } from "../support/drain.ts";
import { freePort } from "../support/free-port.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { operations } from "../support/openapi.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

async function clientOf(options: ServerOptions = {}, more: Partial<ClientOptions> = {}) {
  const { url } = await startServer(options);
  return createClient({ baseUrl: url, ...more });
}

/** Starts a run and waits for its end. */
async function ran(client: Client, thread = "t1", input = "go"): Promise<RunRecord> {
  const { id } = await client.start(thread, { input });
  for await (const _ of client.runs.events(thread, id));
  return client.runs.get(thread, id);
}

const refusal = (status: number, code: string) => ({ name: "ProblemError", status, code });

test("every route of the native API has a method", () => {
  const files = globSync("src/client/*.ts").filter((file) => !file.endsWith("/wire.ts"));
  const source = files.map((file) => readFileSync(file, "utf8")).join("\n");
  // Other services call the address of a trigger, and no front end does.
  const isOwn = (path: string) => !isWirePath(path) && !path.startsWith("/hooks/");
  const native = operations.filter(({ path }) => isOwn(path)).map(({ name }) => name);
  expect(native.length).toBeGreaterThan(50);
  expect(native.filter((name) => !source.includes(`"${name}"`))).toEqual([]);
});

test("docs/reference/client.md names every method", () => {
  const page = readFileSync("docs/reference/client.md", "utf8");
  const client = createClient({ baseUrl: "http://127.0.0.1" });
  for (const [name, what] of Object.entries(client)) {
    expect(page, name).toMatch(new RegExp(`^\\| .*\`${name}[\`(]`, "m"));
    if (typeof what === "function") continue;
    const [, listed = ""] = new RegExp(`^\\| \`${name}\` \\| \`([^\`]*)\``, "m").exec(page) ?? [];
    expect(listed.split(" ").sort(), name).toEqual(Object.keys(what).sort());
  }
});

test("a client's own headers do not change the type of what it sends", async () => {
  const { threads } = await clientOf({}, { headers: { "content-type": "text/plain" } });
  expect((await threads.create({ title: "First" })).title).toBe("First");
});

describe("threads", () => {
  test("are created, listed, found, renamed, annotated and deleted", async () => {
    const { threads } = await clientOf();
    const { id } = await threads.create({ title: "First", metadata: { color: "red" } });
    await threads.create({ id: "second", title: "Second" });
    expect(await threads.get(id)).toMatchObject({ title: "First", metadata: { color: "red" } });
    expect((await threads.rename(id, "Renamed")).title).toBe("Renamed");
    expect((await threads.update(id, { metadata: { done: true } })).metadata).toEqual({ done: true });
    const page = await threads.list({ limit: 1 });
    expect(page.items.map(({ title }) => title)).toEqual(["Renamed"]);
    const rest = await threads.list({ limit: 1, cursor: page.next_cursor });
    expect(rest.items.map(({ title }) => title)).toEqual(["Second"]);
    expect((await threads.list({ q: "ren" })).items).toHaveLength(1);
    expect(await threads.delete(id)).toBeUndefined();
    await expect(threads.get(id)).rejects.toMatchObject(refusal(404, "not_found"));
  });

  test("return their messages, state and usage, and can be forked and cleared", async () => {
    const client = await clientOf({ script: [{ say: "Hello." }] });
    const { threads } = client;
    await ran(client);
    const { items } = await threads.messages("t1");
    expect(items.map(({ role, content }) => [role, content])).toEqual([
      ["user", "go"],
      ["assistant", "Hello."],
    ]);
    const [asked, answered] = items;
    expect((await threads.messages("t1", { after: asked?.id, limit: 5 })).items).toEqual([answered]);
    expect(await threads.state("t1")).toMatchObject({ messages: items, status: "idle" });
    expect(await threads.usage("t1")).toMatchObject({ runs: 1 });
    const copy = await threads.fork("t1", { message_id: asked?.id, title: "Copy" });
    expect(copy).toMatchObject({ title: "Copy", forked_from: { thread_id: "t1", message_id: asked?.id } });
    expect((await threads.fork("t1")).title).toBe((await threads.get("t1")).title);
    await threads.clear("t1");
    expect((await threads.state("t1")).messages).toEqual([]);
  });

  test("get a title from a model", async () => {
    const client = await clientOf({ script: [{ say: "Hello." }, { say: "A greeting" }] });
    await ran(client);
    expect((await client.threads.suggestTitle("t1")).title).toBe("A greeting");
    await client.threads.create({ id: "empty" });
    await expect(client.threads.suggestTitle("empty")).rejects.toMatchObject(refusal(400, "invalid_request"));
  });
});

describe("runs", () => {
  test("can be listed for a thread and across threads, and read with their trace", async () => {
    const client = await clientOf({ script: () => ({ say: "Hello." }) });
    const first = await ran(client);
    const second = await ran(client, "t2");
    expect((await client.runs.of("t1")).items).toEqual([expect.objectContaining({ id: first.id })]);
    const all = await client.runs.list({ status: "success" });
    expect(all.items.map(({ id }) => id)).toEqual([second.id, first.id]);
    expect((await client.runs.trace("t1", first.id)).spans.map(({ name }) => name)).toContain("llm.call");
    expect(first.status).toBe("success");
  });

  test("can be steered during work", async () => {
    const { tool, open, entered } = gate();
    const client = await clientOf({ script: gated, tools: [tool], agents: WITH_GATE });
    const { id } = await client.start("t1", { input: "go" });
    await entered;
    await expect
      .poll(async () => (await client.runs.get("t1", id)).phase)
      .toEqual({ name: "executing_tool", of: ["gate"] });
    const { message_id } = await client.steer("t1", id, "Hurry.");
    open();
    for await (const _ of client.runs.events("t1", id));
    const { items } = await client.threads.messages("t1");
    expect(items.find((message) => message.id === message_id)).toMatchObject({ content: "Hurry." });
    await expect(client.steer("t1", id, "Too late.")).rejects.toMatchObject(refusal(409, "run_not_active"));
  });

  test("can be stopped", async () => {
    const { tool, entered } = gate();
    const client = await clientOf({ script: gated, tools: [tool], agents: WITH_GATE });
    const { id } = await client.start("t1", { input: "go" });
    await entered;
    expect(await client.stop("t1", id)).toMatchObject({ id, status: "cancelled" });
  });

  test("start once per key", async () => {
    const client = await clientOf({ script: () => ({ say: "Hello." }) });
    const key = { idempotencyKey: "k1" };
    const first = await client.start("t1", { input: "go" }, key);
    expect((await client.start("t1", { input: "go" }, key)).id).toBe(first.id);
    expect((await client.runs.of("t1")).items).toHaveLength(1);
  });
});

describe("runs without a thread", () => {
  test("can be followed, started, and started together", async () => {
    const client = await clientOf({ script: () => ({ say: "Hello." }) });
    const started: string[][] = [];
    const events: StreamEvent[] = [];
    const options = { onStarted: (...ids: string[]) => started.push(ids) };
    for await (const event of client.runs.stream({ input: "go" }, undefined, options)) events.push(event);
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    const [[run = "", thread = ""] = []] = started;
    expect(await client.runs.get(thread, run)).toMatchObject({ id: run, thread_id: thread });
    const later = await client.runs.start({ input: "go", keep_thread: false }, { idempotencyKey: "k1" });
    const again = await client.runs.start({ input: "go", keep_thread: false }, { idempotencyKey: "k1" });
    expect(again.id).toBe(later.id);
    const items = await client.runs.startAll([{ input: "one" }, { input: "two", agent: "unknown" }]);
    expect(items).toMatchObject([{ run: { agent: "assistant" } }, { error: { code: "invalid_request" } }]);
  });
});

describe("interrupts", () => {
  const asking = {
    script: [{ call: [{ tool: "execute", args: { command: "echo $((6 * 7))" } }] }, { say: "Thanks." }],
    agents: `agents: { assistant: { model: "scripted:test", backend: { type: local }, permissions: { rules: [{ ask: execute }] } } }`,
  };

  test("can be listed for a thread and across threads, and answered without following the run", async () => {
    const client = await clientOf(asking);
    const { id } = await ran(client);
    const [open] = await client.interrupts("t1");
    expect((await client.openInterrupts()).items).toEqual([{ ...open, thread_id: "t1" }]);
    const resumed = await client.answer("t1", id, [{ id: open?.id ?? "", decision: "approve" }]);
    expect(resumed.resumes).toBe(id);
    const events: StreamEvent[] = [];
    for await (const event of client.runs.events("t1", resumed.id)) events.push(event);
    expect(dataOf(events, "on_tool_end")[0]?.output).toContain("42");
    expect(await client.interrupts("t1")).toEqual([]);
    const again = client.answer("t1", id, [{ id: open?.id ?? "", decision: "deny" }]);
    await expect(again).rejects.toMatchObject({ status: 409, code: "interrupt_closed" });
  });

  test("are none for a thread that does not exist", async () => {
    expect(await (await clientOf()).interrupts("nowhere")).toEqual([]);
  });
});

test("agents can be listed and read; overrides can be set, merged and removed", async () => {
  const { agents } = await clientOf();
  const [agent] = await agents.list();
  expect(await agents.get("assistant")).toMatchObject(agent ?? {});
  const [hook = ""] = Object.keys((await agents.overrides("assistant")).changeable);
  expect((await agents.setOverrides("assistant", { hooks: { [hook]: false } })).hooks).toEqual({
    [hook]: false,
  });
  expect((await agents.setOverrides("assistant", { hooks: { [hook]: null } })).hooks).toEqual({});
  await agents.setOverrides("assistant", { hooks: { [hook]: false } });
  await agents.deleteOverrides("assistant");
  expect((await agents.overrides("assistant")).hooks).toBeUndefined();
  const unknown = agents.setOverrides("assistant", { hooks: { none: false } });
  await expect(unknown).rejects.toMatchObject({ status: 400, details: { issues: [{ path: "hooks.none" }] } });
});

test("permissions of a thread and of an agent can be listed, added and removed", async () => {
  const { permissions, threads } = await clientOf();
  await threads.create({ id: "t1" });
  const ofThread = await permissions.addToThread("t1", { allow: "execute" });
  const ofAgent = await permissions.addToAgent("assistant", { deny: "write_file", message: "Read only." });
  expect(await permissions.ofThread("t1")).toEqual([ofThread]);
  expect(await permissions.ofAgent("assistant")).toEqual([ofAgent]);
  await permissions.removeFromThread("t1", ofThread.id);
  await permissions.removeFromAgent("assistant", ofAgent.id);
  await permissions.addToThread("t1", { allow: "read_file" });
  await permissions.clearThread("t1");
  expect(await permissions.ofThread("t1")).toEqual([]);
  expect(await permissions.ofAgent("assistant")).toEqual([]);
});

test("tools can be registered, listed, given a late result, and removed", async () => {
  const endpoint = await callbackTool(accept);
  const port = await freePort();
  const client = await clientOf({
    script: [{ call: [{ tool: "freight", id: "call_1" }] }, { say: "Now I know." }],
    agents: `agents: { assistant: { model: "scripted:test", tools: ["freight"] } }`,
    config: {
      listen: { port },
      public_url: `http://127.0.0.1:${port}`,
      http_tools: { allow: endpoint.allow },
    },
  });
  const { secret } = await client.tools.put({
    ...{ name: "freight", description: "What it costs.", parameters: { type: "object" } },
    ...{ callback_url: `http://${endpoint.allow}/`, annotations: { requires_permission: false } },
  });
  expect(secret).toEqual(expect.any(String));
  expect((await client.tools.list()).items.map(({ name }) => name)).toEqual(["freight"]);

  const turn = client.run("t1", { input: "go" }, undefined, { unit: "turn" });
  const events: StreamEvent[] = [];
  for await (const event of turn) {
    events.push(event);
    if (event.event !== "done" || event.data.status !== "interrupted") continue;
    const token = endpoint.calls[0]?.result_url.split("/").at(-1) ?? "";
    await client.tools.deliver(token, { result: { price: 42 } });
  }
  expect(dataOf(events, "done").map(({ status }) => status)).toEqual(["interrupted", "success"]);

  await client.tools.delete("freight");
  expect((await client.tools.list()).items).toEqual([]);
});

test("a turn that waits for a late result ends if a new message supersedes it", async () => {
  const endpoint = await callbackTool(accept);
  const client = await clientOf({
    script: [{ call: [{ tool: "freight", id: "call_1" }] }, { say: "Meanwhile." }],
    agents: `agents: { assistant: { model: "scripted:test", tools: ["freight"] } }`,
    config: { public_url: "http://127.0.0.1:9", http_tools: { allow: endpoint.allow } },
  });
  await client.tools.put({
    ...{ name: "freight", description: "What it costs.", parameters: { type: "object" } },
    ...{ callback_url: `http://${endpoint.allow}/`, annotations: { requires_permission: false } },
  });
  const events: StreamEvent[] = [];
  for await (const event of client.run("t1", { input: "go" }, undefined, { unit: "turn" })) {
    events.push(event);
    if (event.event === "done") await client.start("t1", { input: "another thing" });
  }
  expect(dataOf(events, "done").map(({ status }) => status)).toEqual(["interrupted"]);
  expect(events.at(-1)?.event).toBe("done");
});

describe("the backend", () => {
  test("can be started, restarted and stopped", async () => {
    const { backend } = await clientOf();
    expect((await backend.status()).status).toBe("stopped");
    expect((await backend.start()).status).toBe("running");
    expect((await backend.restart("assistant")).status).toBe("running");
    expect((await backend.stop()).status).toBe("stopped");
  });

  test("stores files as text, bytes and blobs, and returns them byte for byte", async () => {
    const { files } = await clientOf();
    const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256);
    const name = "a folder/ü #?&%.bin";
    expect(await files.write(name, bytes)).toMatchObject({ bytes_written: bytes.length });
    expect(new Uint8Array(await (await files.read(name)).arrayBuffer())).toEqual(bytes);
    const part = await files.read(name, { range: { first: 10, last: 12 } });
    expect([...new Uint8Array(await part.arrayBuffer())]).toEqual([10, 11, 12]);
    expect((await files.read(name, { range: { first: 99_999 } })).size).toBe(1);
    await files.write("notes.md", new Blob(["# Nötes"]), { agent: "assistant" });
    expect(await (await files.read("notes.md")).text()).toBe("# Nötes");
    const { version } = await files.readVersion("notes.md");
    await files.write("notes.md", "", { version });
    for (const stale of [version, null])
      await expect(files.write("notes.md", "x", { version: stale })).rejects.toMatchObject(
        refusal(412, "precondition_failed"),
      );
    expect((await files.read("notes.md")).size).toBe(0);
    expect((await files.list()).map(({ path, type }) => [path.split("/").at(-1), type])).toEqual([
      ["a folder", "directory"],
      ["notes.md", "file"],
    ]);
    expect(await files.list("a folder")).toHaveLength(1);
    await expect(files.read("a folder")).rejects.toThrow("`a folder` is a folder, not a file.");
    await files.delete("a folder");
    await expect(files.read(name)).rejects.toMatchObject(refusal(404, "not_found"));
  });

  test("gets no request for a name that would lead to another address", async () => {
    const { files, threads } = await clientOf();
    await expect(files.read("../../threads")).rejects.toThrow(TypeError);
    await expect(files.delete("a/./b")).rejects.toThrow(TypeError);
    for (const name of ["..", ".", ""]) await expect(threads.delete(name)).rejects.toThrow(TypeError);
  });
});

test("the server returns the caller, the usage and its status", async () => {
  const client = await clientOf();
  await ran(client);
  expect(await client.me()).toMatchObject({ auth: "none", scopes: expect.arrayContaining(["run"]) });
  // At midnight, the run was yesterday.
  expect((await client.usage({ days: 2 })).totals.calls).toBe(1);
  expect((await client.health()).status).toBe("ok");
  expect((await client.ready()).status).toBe("ready");
});

test("a ticket opens one stream without headers", async () => {
  const { url } = await startServer();
  const client = createClient({ baseUrl: url });
  const { ticket } = await client.ticket("/events");
  const response = await fetch(`${url}/events?ticket=${encodeURIComponent(ticket)}`);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  await response.body?.cancel();
});

test("images and files are sent as parts of a message, and returned unchanged", async () => {
  const client = await clientOf({ script: [{ say: "I see." }] });
  const image = new Blob([Uint8Array.from({ length: 70_000 }, (_, index) => index % 251)], {
    type: "image/png",
  });
  const notes = new Blob(["Nötes"], { type: "text/plain" });
  const content = [await partOf(image), await partOf(notes, "notes.txt")];
  expect(content.map(({ type }) => type)).toEqual(["image", "file"]);
  const { id } = await client.start("t1", { messages: [{ role: "user", content }] });
  for await (const _ of client.runs.events("t1", id));
  const kept = (await client.threads.messages("t1")).items[0]?.content;
  const parts = Array.isArray(kept) ? kept.flatMap((part) => (part.type === "text" ? [] : [part])) : [];
  expect(await Promise.all(parts.map(async (part) => blobOf(part).arrayBuffer()))).toEqual([
    await image.arrayBuffer(),
    await notes.arrayBuffer(),
  ]);
  await expect(partOf(new Blob([]))).rejects.toThrow("The file is empty");
});

test("webhooks can be created, tested, listed with their deliveries, resent and deleted", async () => {
  const inbox = await webhookInbox(204, 404);
  const client = await clientOf({
    script: () => ({ say: "ok" }),
    config: { http_tools: { allow: "127.0.0.1" } },
  });
  const spec = { url: inbox.url, on: ["run.ended" as const] };
  for (const { put, get, test: tryOut, rotate, list, delete: remove } of [
    client.webhooks,
    client.admin.webhooks,
  ]) {
    const { secret } = await put("mine", { ...spec, paused: true });
    expect((await rotate("mine")).secret).not.toBe(secret);
    expect(await get("mine")).toMatchObject({ id: "mine", paused: true });
    expect((await list()).items.map(({ id }) => id)).toEqual(["mine"]);
    await expect(put("mine", { ...spec, paused: false }, { version: '"other"' })).rejects.toMatchObject(
      refusal(412, "precondition_failed"),
    );
    await tryOut("mine");
    await remove("mine");
    expect((await list()).items).toEqual([]);
  }
  expect(inbox.received.map(({ message }) => message.type)).toEqual(["webhook.test", "webhook.test"]);
  for (const { create, deliveries, send } of [client.webhooks, client.admin.webhooks]) {
    const { id } = await create(spec);
    await ran(client);
    await expect.poll(async () => (await deliveries(id, { status: "delivered" })).items.length).toBe(1);
    const [first] = (await deliveries(id)).items;
    await send(id, first?.id ?? "");
    await expect
      .poll(() => inbox.received.filter(({ headers }) => headers["webhook-id"] === first?.id).length)
      .toBe(2);
  }
});
