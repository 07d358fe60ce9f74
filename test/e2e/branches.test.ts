// What an edit takes away is kept, listed and brought back.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { saidIn, threadsOf } from "../support/native.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { AGENTS } from "../wires/agents.ts";

async function started(options: ServerOptions = {}) {
  const server = await startServer({ script: (_, n) => ({ say: `answer ${n}` }), ...options });
  const client = createClient({ baseUrl: server.url });
  const say = async (input: string, replaces?: string) => {
    const run = await client.start("t", { input, ...(replaces ? { replaces } : {}) });
    for await (const _ of client.runs.events("t", run.id));
  };
  const idOf = async (text: string) =>
    (await client.threads.messages("t")).items.find(({ content }) => content === text)?.id ?? "";
  const said = () => saidIn(server.url, "t");
  const saidInBranches = async () =>
    Promise.all((await client.threads.branches("t")).map(({ id }) => saidIn(server.url, id)));
  return { ...server, client, say, idOf, said, saidInBranches };
}

test("an edit keeps the replaced messages as a branch that can be restored, and then the edit too", async () => {
  const { url, client, say, idOf, said, saidInBranches } = await started();
  await say("one");
  await say("two");
  const replaced = await idOf("two");
  const before = await client.threads.messages("t");
  await say("other", replaced);
  expect(await said()).toEqual(["one", "answer 0", "other", "answer 2"]);
  expect(await saidInBranches()).toEqual([["one", "answer 0", "two", "answer 1"]]);
  expect(await threadsOf(url)).toMatchObject([{ id: "t" }]);

  const [branch] = await client.threads.branches("t");
  expect(branch).toMatchObject({ parent: { thread_id: "t", replaced } });
  const run = await client.threads.restore("t", branch?.id ?? "");
  expect(run).toMatchObject({ status: "success", usage: { output_tokens: 0 } });
  expect((await client.threads.messages("t")).items).toEqual(before.items);
  expect(await saidInBranches()).toEqual([["one", "answer 0", "other", "answer 2"]]);

  const [other] = await client.threads.branches("t");
  await client.threads.restore("t", other?.id ?? "");
  expect(await said()).toEqual(["one", "answer 0", "other", "answer 2"]);
  expect(await saidInBranches()).toEqual([["one", "answer 0", "two", "answer 1"]]);
  await say("three");
  expect(await said()).toEqual(["one", "answer 0", "other", "answer 2", "three", "answer 3"]);
});

test("simultaneous edits lose nothing: one is accepted, and the replaced messages are kept once", async () => {
  const { client, say, idOf, saidInBranches } = await started();
  await say("one");
  const replaced = await idOf("one");
  const edits = await Promise.allSettled(
    ["a", "b", "c"].map((input) => client.start("t", { input, replaces: replaced })),
  );
  const taken = edits.filter(({ status }) => status === "fulfilled");
  expect(taken).toHaveLength(1);
  expect(await saidInBranches()).toEqual([["one", "answer 0"]]);
});

test("a thread keeps its newest sixteen branches", async () => {
  const { client, say, idOf, saidInBranches } = await started();
  await say("0");
  for (let n = 1; n <= 18; n++) await say(`${n}`, await idOf(`${n - 1}`));
  const kept = (await saidInBranches()).map(([words]) => Number(words));
  expect(kept).toEqual(Array.from({ length: 16 }, (_, at) => 17 - at));
  expect(await client.threads.list()).toMatchObject({ items: [{ id: "t" }] });
});

test("branches are deleted with their thread, and no other user can see them", async () => {
  const { client, say, idOf } = await started();
  await say("one");
  await say("other", await idOf("one"));
  const [branch] = await client.threads.branches("t");
  await client.threads.create({ id: "u" });
  await expect(client.threads.restore("u", branch?.id ?? "")).rejects.toMatchObject({ status: 404 });
  await expect(client.threads.restore("t", "u")).rejects.toMatchObject({ status: 404 });
  await client.threads.delete("t");
  await expect(client.threads.get(branch?.id ?? "")).rejects.toMatchObject({ status: 404 });
});

test("a branch does not change: no run writes to it, and no other thread gets its id", async () => {
  const { url, client, say, idOf, saidInBranches } = await started();
  await say("one");
  await say("other", await idOf("one"));
  const [{ id = "" } = {}] = await client.threads.branches("t");
  const refused = { status: 400, message: expect.stringContaining("fork") };
  await expect(client.start(id, { input: "in the branch" })).rejects.toMatchObject(refused);
  const [first] = (await client.threads.messages(id)).items;
  await expect(client.start(id, { input: "x", replaces: first?.id ?? "" })).rejects.toMatchObject(refused);
  const next = id.replace(/0$/, "1");
  await expect(client.threads.create({ id: next })).rejects.toMatchObject(refused);
  await expect(client.threads.fork("t", { id: next })).rejects.toMatchObject(refused);
  const body = JSON.stringify({ thread_id: next });
  const headers = { "content-type": "application/json" };
  const created = await fetch(`${url}/langgraph/threads`, { method: "POST", headers, body });
  expect([created.status, await created.text()]).toEqual([422, expect.stringContaining("branch")]);
  const messages = ["x", "y", "z"].map((content, at) => ({ role: at === 1 ? "assistant" : "user", content }));
  const named = { ...headers, "x-openwebui-chat-id": next };
  const chat = JSON.stringify({ model: "assistant", messages });
  expect(
    (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: named, body: chat })).status,
  ).toBe(400);
  await expect(client.threads.get(next)).rejects.toMatchObject({ status: 404 });
  expect(await saidInBranches()).toEqual([["one", "answer 0"]]);
});

test("a restored call without a result has an unknown outcome, and is not reported as not run", async () => {
  const { client, say, idOf } = await started({
    agents: AGENTS,
    script: [{ call: [{ tool: "execute", args: { command: "true" } }] }, { say: "Other." }],
  });
  await say("one");
  await say("other", await idOf("one"));
  const [branch] = await client.threads.branches("t");
  await client.threads.restore("t", branch?.id ?? "");
  const { items } = await client.threads.messages("t");
  expect(items.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  expect(items.at(-1)).toMatchObject({ error: expect.stringContaining("Outcome unknown") });
});
