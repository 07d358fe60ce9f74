// Agents that make schedules for their users: asked first, counted, and for no one else.

import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type Message, textOf, toolMessages } from "../../src/agent/core/message.ts";
import { createClient } from "../../src/client/client.ts";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { BEHIND_GATEWAY, clientsAt } from "../support/gateway.ts";
import { startServer } from "../support/server.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

type Call = readonly [tool: string, args: Record<string, unknown>];

const TOOLS = "[schedule_create, schedule_list, schedule_delete]";
const ALLOWED = `permissions: { rules: [{ allow: "schedule_*" }] }`;
const SOON_MS = 300_000;
const DAILY = { cron: "0 9 * * *", input: "Look at the tickets." };

/** A server whose model makes the calls that the user's message names. `later` moves the clock of its store. */
async function serve({ permissions = "", limits = {}, config = {} } = {}) {
  const agent = (tools: string) => `{ model: "scripted:test", tools: ${tools}, ${permissions} }`;
  let late = 0;
  const { url } = await startServer({
    now: () => Date.now() + late,
    agents: `
agents:
  assistant: ${agent(TOOLS)}
  other: ${agent(TOOLS)}
  everything: ${agent('["*"]')}
  globbed: ${agent('["schedule_*"]')}
`,
    script: ({ messages }) => turnAfter(messages.at(-1)),
    config: { ...BEHIND_GATEWAY, limits, ...config },
  });
  return {
    url,
    later: (ms: number) => {
      late += ms;
    },
    as(user: string, tenant = "acme") {
      const client = clientsAt(url, "read,run,admin")(user, tenant);
      const results = async (thread: string) =>
        toolMessages((await client.threads.messages(thread)).items as Message[]).map(
          ({ error, content }) => error ?? textOf(content),
        );
      return {
        client,
        results,
        /** The results of the calls, which the agent makes at once. */
        async call(calls: readonly Call[], agent = "assistant", thread: string = randomUUID()) {
          for await (const _ of client.run(thread, { input: JSON.stringify(calls), agent }));
          return results(thread);
        },
        async answer(thread: string, decision: "approve" | "deny") {
          const asked = await client.interrupts(thread);
          const answers = asked.map(({ id }) => ({ id, decision }));
          for await (const _ of client.resume(thread, asked[0]?.run_id ?? "", answers));
          return results(thread);
        },
        schedules: async () => (await client.schedules.list()).items,
      };
    },
  };
}

function turnAfter(message: Message | undefined) {
  const text = message?.role === "user" ? textOf(message.content) : "";
  if (!text.startsWith("[[")) return { say: "done" };
  return { call: (JSON.parse(text) as Call[]).map(([tool, args]) => ({ tool, args, id: randomUUID() })) };
}

test("a person is asked before an agent creates or deletes a schedule, and a denial creates none", async () => {
  const { as } = await serve();
  const ada = as("ada");
  await ada.call([["schedule_create", DAILY]], "assistant", "t1");
  const [asked] = await ada.client.interrupts("t1");
  expect(asked).toMatchObject({ kind: "approval", name: "schedule_create" });
  expect(asked?.prompt).toMatch(/`0 9 \* \* \*` \(UTC\), with this message\? Look at the tickets\.$/);
  expect(await ada.schedules()).toEqual([]);
  expect(await ada.answer("t1", "deny")).toEqual([expect.stringContaining("does not allow it")]);
  expect(await ada.schedules()).toEqual([]);

  await ada.call([["schedule_create", DAILY]], "assistant", "t2");
  await ada.answer("t2", "approve");
  const [made] = await ada.schedules();
  const { items: runs } = await ada.client.runs.of("t2");
  expect(made).toMatchObject({ ...DAILY, agent: "assistant", thread: "new", status: "active" });
  expect(runs.map(({ id }) => id)).toContain(made?.metadata.created_by_run);

  await ada.call([["schedule_delete", { id: made?.id }]], "assistant", "t3");
  expect(await ada.schedules()).toHaveLength(1);
  await ada.answer("t3", "approve");
  expect(await ada.schedules()).toEqual([]);
  const trail = async () => (await ada.client.admin.audit({ action: "schedule" })).items;
  await expect.poll(trail).toHaveLength(2);
  const acts = (await trail()).map(({ actor, action, target }) => [actor.type, actor.id, action, target?.id]);
  expect(acts).toEqual([
    ["agent", "assistant", "schedule.delete", made?.id],
    ["agent", "assistant", "schedule.update", made?.id],
  ]);
});

test("permissions decide if there are any: allowed calls are not asked about, and the mode decides the others", async () => {
  const allowed = (await serve({ permissions: ALLOWED })).as("ada");
  expect(await allowed.call([["schedule_create", DAILY]])).toEqual([expect.stringContaining("next_runs")]);
  const asking = (await serve({ permissions: "permissions: { mode: accept_edits }" })).as("ada");
  await asking.call([["schedule_create", DAILY]], "assistant", "t1");
  expect(await asking.client.interrupts("t1")).toHaveLength(1);
  await asking.answer("t1", "approve");
  expect(await asking.schedules()).toHaveLength(1);
});

test("an agent has the tools only if it names them: `*` does not include them", async () => {
  const { client } = (await serve()).as("ada");
  const tools = async (agent: string) =>
    (await client.agents.tools(agent)).map(({ name }) => name).filter((name) => name.startsWith("schedule_"));
  const all = ["schedule_create", "schedule_delete", "schedule_list"];
  expect(await tools("assistant")).toEqual(all);
  expect(await tools("globbed")).toEqual(all);
  expect(await tools("everything")).toEqual([]);
});

test("an agent's schedule starts runs of this agent, even in the conversation that created it", async () => {
  const { as, later } = await serve({ permissions: ALLOWED });
  const ada = as("ada");
  const at = new Date(Date.now() + SOON_MS).toISOString();
  const once = { at, input: "Remind me." };
  await ada.call(
    [
      ["schedule_create", { ...once, thread: "this" }],
      ["schedule_create", once],
    ],
    "other",
    "t1",
  );
  later(SOON_MS);
  const runs = async () => (await ada.client.runs.of("t1")).items;
  await expect.poll(runs).toHaveLength(2);
  const started = async () => (await ada.schedules()).map(({ last_run }) => last_run?.thread_id);
  await expect.poll(started).toEqual(expect.not.arrayContaining([undefined]));
  const [{ thread_id } = { thread_id: "" }] = (await ada.schedules()).flatMap(({ last_run, thread }) =>
    thread === "new" && last_run ? [last_run] : [],
  );
  expect((await ada.client.runs.of(thread_id)).items).toMatchObject([{ agent: "other" }]);
  expect(await started()).toContain("t1");
});

test("an agent can list and delete only the schedules that it has created for this user", async () => {
  const { as } = await serve({ permissions: ALLOWED });
  const [ada, bob, stranger] = [as("ada"), as("bob"), as("ada", "other")] as const;
  await ada.client.schedules.put("own", DAILY);
  await ada.call([["schedule_create", DAILY]]);
  const id = (await ada.schedules()).map((each) => each.id).find((each) => each !== "own") ?? "";
  for (const each of [bob, stranger]) {
    expect(await each.call([["schedule_list", {}]])).toEqual(["[]"]);
    expect(await each.call([["schedule_delete", { id }]])).toEqual([expect.stringContaining("no schedule")]);
  }
  expect(await ada.call([["schedule_list", {}]], "other")).toEqual(["[]"]);
  expect(await ada.call([["schedule_delete", { id }]], "other")).toEqual([
    expect.stringContaining("no schedule"),
  ]);
  expect(await ada.call([["schedule_delete", { id: "own" }]])).toEqual([
    expect.stringContaining("no schedule"),
  ]);
  expect(await ada.schedules()).toHaveLength(2);
  const [listed = ""] = await ada.call([["schedule_list", {}]]);
  expect(JSON.parse(listed)).toMatchObject([{ id, ...DAILY, status: "active" }]);
  expect(await ada.call([["schedule_delete", { id }]])).toEqual([`Schedule \`${id}\` is deleted.`]);
});

test("a user's number of agent schedules is limited, even with simultaneous calls; a completed one makes room", async () => {
  const { as, later } = await serve({ permissions: ALLOWED, limits: { agent_schedules: 2, schedules: 4 } });
  const ada = as("ada");
  const create: Call = ["schedule_create", DAILY];
  const at = new Date(Date.now() + SOON_MS).toISOString();
  await ada.call([["schedule_create", { at, input: "Once." }]]);
  const results = await ada.call([create, create, create, create]);
  expect(results.filter((each) => each.includes("the maximum"))).toHaveLength(3);
  expect(await ada.schedules()).toHaveLength(2);
  const states = async () => (await ada.schedules()).map(({ status }) => status);
  later(SOON_MS);
  await expect.poll(states).toContain("completed");
  expect(await ada.call([create, create])).toEqual(
    expect.arrayContaining([expect.stringContaining("next_runs"), expect.stringContaining("the maximum")]),
  );
  expect(await states()).toEqual(["active", "active"]);
  expect(await as("bob").call([create])).toEqual([expect.stringContaining("next_runs")]);
  for (const id of ["a", "b"]) await ada.client.schedules.put(id, DAILY);
  const [{ id = "" } = {}] = (await ada.schedules()).filter((each) => each.id.startsWith("agent-"));
  // A paused one has not completed.
  await ada.client.schedules.put(id, { ...DAILY, agent: "assistant", paused: true });
  expect(await ada.call([create])).toEqual([expect.stringContaining("the maximum")]);
  await ada.call([["schedule_delete", { id }]]);
  await ada.client.schedules.put("c", DAILY);
  expect(await ada.call([create])).toEqual([expect.stringContaining("already 4 schedules")]);
});

test("an agent's schedule is paused once the key of its run is revoked, and a webhook and the trail report it", async () => {
  const inbox = await webhookInbox();
  const root = newApiKey().key;
  const auth = { scheme: "api_key", bootstrap_key: root };
  const config = { auth, http_tools: { allow: inbox.host } };
  const { url, later } = await serve({ permissions: ALLOWED, config });
  const clientOf = (key: string) =>
    createClient({ baseUrl: url, headers: { authorization: `Bearer ${key}` } });
  const { admin } = clientOf(root);
  const [own, other] = [await admin.createKey({ user: "ada" }), await admin.createKey({ user: "ada" })];
  const input = JSON.stringify([["schedule_create", { cron: "* * * * *", input: "go" }]]);
  for await (const _ of clientOf(own.key).run("t1", { input }));
  await clientOf(other.key).webhooks.put("mine", { url: inbox.url, on: ["schedule.paused"] });
  await admin.revokeKey(own.id);
  const schedules = async () => {
    later(60_000);
    return (await clientOf(other.key).schedules.list()).items;
  };
  const message = `The API key \`${own.id}\` was revoked.`;
  await expect
    .poll(schedules)
    .toMatchObject([{ status: "paused", pause: { reason: "credentials_ended", message } }]);
  const [{ id } = { id: "" }] = await schedules();
  const data = { schedule_id: id, agent: "assistant", reason: "credentials_ended", user: "ada" };
  await expect
    .poll(() => inbox.received.map(({ message }) => message))
    .toMatchObject([{ type: "schedule.paused", data }]);
  const trail = async () => (await admin.audit({ action: "schedule.pause" })).items;
  await expect
    .poll(trail)
    .toMatchObject([{ actor: { type: "schedule", id, user: "ada" }, outcome: "failed" }]);
});

test("the model learns why a schedule cannot be created", async () => {
  const ada = (await serve({ permissions: ALLOWED })).as("ada");
  const create = (args: object): Call => ["schedule_create", { input: "go", ...args }];
  const results = await ada.call([
    create({ cron: "0 99 * * *" }),
    create({ at: "2001-01-01T00:00:00Z" }),
    create({ cron: "0 9 * * *", timezone: "Mars/Olympus" }),
    create({}),
  ]);
  expect(results).toEqual([
    expect.stringContaining("column 3"),
    expect.stringContaining("no time is left"),
    expect.stringContaining("not an IANA time zone"),
    expect.stringContaining("either `cron`"),
  ]);
});
