import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../src/agent/models/scripted.ts";
import type { Interrupt } from "../../src/protocol/interrupt.ts";
import { dataOf } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";

const json = { accept: "application/json", "content-type": "application/json" };
const send = async (url: string, body: unknown) => {
  const response = await fetch(url, { method: "POST", headers: json, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const getJson = async (url: string) => (await (await fetch(url)).json()) as { items: Interrupt[] };

const ASKING = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user]
    permissions: { rules: [{ allow: execute, command_prefix: [echo] }, { ask: execute, message: May it? }] }
`;
const run = (command: string) => ({ tool: "execute", args: { command } });

async function interrupted(script: readonly Turn[], body: object = { input: "go" }, agents = ASKING) {
  const server = await startServer({ script, agents });
  const viewer = await post(`${server.url}/threads/t1/runs`, body);
  const events = await viewer.ended();
  expect(dataOf(events, "done")[0]).toMatchObject({ status: "interrupted", stop_reason: "tool_use" });
  return { ...server, events, ...openOf(server.url, viewer) };
}

function openOf(url: string, viewer: Viewer) {
  const base = url + viewer.headers.get("location")?.replace(/\/events$/, "");
  const resume = (...answers: unknown[]) => post(`${base}/resume`, { answers });
  return { open: async () => (await getJson(`${url}/threads/t1/interrupts`)).items, resume, base };
}

describe("a call that needs an approval", () => {
  test("waits durably while allowed calls run; once approved, it runs once", async () => {
    const script = [
      { call: [run("echo may; "), run("touch asked; echo asked"), run("echo free")] },
      { say: "Done." },
    ];
    const { url, events, open, resume } = await interrupted(script);
    expect(dataOf(events, "on_tool_end").filter(({ interrupted }) => interrupted)).toHaveLength(1);
    expect(dataOf(events, "on_interrupt")[0]).toMatchObject({
      kind: "approval",
      prompt: "May it?",
      name: "execute",
    });
    const [asked] = await open();
    expect(await getJson(`${url}/interrupts`)).toMatchObject({ items: [{ id: asked?.id, thread_id: "t1" }] });

    const viewer = await resume({ id: asked?.id, decision: "approve" });
    const after = await viewer.ended();
    expect(dataOf(after, "on_resume")).toEqual([{ id: asked?.id, name: "execute", decision: "approve" }]);
    expect(dataOf(after, "on_tool_end").map(({ output }) => output)).toEqual(["asked\n[exit_code: 0]"]);
    expect(dataOf(after, "done")[0]?.status).toBe("success");
    expect(await open()).toEqual([]);
  });

  test("lists how broadly an answer can be remembered, remembers it that broadly, and refuses any other value", async () => {
    const script = [{ call: [run("cp one two")] }, { call: [run("cp one three")] }, { say: "Done." }];
    const { base, url, open, resume } = await interrupted(script);
    const [asked] = await open();
    expect(asked?.remember_options).toEqual([
      { remember_as: "call" },
      { remember_as: "command", command_prefix: ["cp"] },
      { remember_as: "tool" },
    ]);
    const answer = { id: asked?.id, decision: "approve" };
    const alone = await send(`${base}/resume`, { answers: [{ ...answer, remember_as: "tool" }] });
    expect(alone.body.detail ?? alone.body.message).toContain(
      "accepts `remember_as` only together with `remember`",
    );
    const viewer = await resume({ ...answer, remember: "session", remember_as: "command" });
    const events = await viewer.ended();
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    expect(await getJson(`${url}/threads/t1/permissions`)).toMatchObject({
      items: [{ decision: "allow", matcher: { tool: "execute", command_prefix: ["cp"] } }],
    });
  });

  test("is not remembered for commands that cannot be identified by their beginning", async () => {
    const { base, open } = await interrupted([{ call: [run("echo $(date)")] }]);
    const id = (await open())[0]?.id;
    const wide = { id, decision: "approve", remember: "agent", remember_as: "command" };
    const { status, body } = await send(`${base}/resume`, { answers: [wide] });
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain("its `remember_as` may be `call` or `tool`");
  });

  test("accepts the first answer, and refuses a second or an invalid one", async () => {
    const { base, open, resume } = await interrupted([{ call: [run("rm one")] }, { say: "Done." }]);
    const id = (await open())[0]?.id;
    const refused = [
      await send(`${base}/resume`, { answers: [{ id: "approval_none", decision: "approve" }] }),
      await send(`${base}/resume`, { answers: [{ id, decision: "edit" }] }),
      await send(`${base}/resume`, { answers: [] }),
    ];
    expect(refused.map(({ body }) => body.code)).toEqual([
      "interrupt_closed",
      "invalid_request",
      "invalid_request",
    ]);
    await (await resume({ id, decision: "approve" })).ended();
    expect((await send(`${base}/resume`, { answers: [{ id, decision: "deny" }] })).body.code).toBe(
      "interrupt_closed",
    );
  });
});

test("a question waits for the user, and the model receives the answer", async () => {
  const question = {
    tool: "ask_user",
    args: { question: "Which?", kind: "select", options: ["red", "blue"] },
  };
  const { base, open, resume } = await interrupted([{ call: [question] }, { say: "Blue it is." }]);
  const [asked] = await open();
  const other = { id: asked?.id, decision: "respond", message: "green" };
  expect(await send(`${base}/resume`, { answers: [other] })).toMatchObject({
    status: 400,
    body: {
      code: "invalid_request",
      detail: `answers: \`${asked?.id}\` accepts one of its options as \`message\`: \`red\`, \`blue\`.`,
    },
  });
  expect(asked).toMatchObject({ kind: "question", prompt: "Which?", options: ["red", "blue"] });
  const events = await (await resume({ id: asked?.id, decision: "respond", message: "blue" })).ended();
  expect(dataOf(events, "on_tool_end")[0]?.output).toBe("blue");
});

describe("cancelling a run that waits for answers", () => {
  test("answers all its calls as cancelled without calling the model", async () => {
    const script = [{ call: [run("rm one"), run("rm two"), run("echo free")] }, { say: "Never said." }];
    const { url, base, open } = await interrupted(script);
    const ids = (await open()).map(({ id }) => id);
    const { status, body } = await send(`${base}/cancel`, {});
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { status: "cancelled", resumes: base.split("/").at(-1) },
    });
    const viewer = await view(`${url}/threads/t1/runs/${body.id}/events`);
    const events = await viewer.ended();
    expect(dataOf(events, "on_state")).toEqual([
      { key: "interrupts", patch: Object.fromEntries(ids.map((id) => [id, null])) },
    ]);
    expect(await open()).toEqual([]);
    const messages = (await (await fetch(`${url}/threads/t1/messages`)).json()) as { items: object[] };
    expect(messages.items.slice(-2)).toMatchObject([
      { role: "tool", error: "Cancelled before it was run." },
      { role: "tool", error: "Cancelled before it was run." },
    ]);
    expect(await (await fetch(`${url}/threads/t1`)).json()).not.toMatchObject({ status: "interrupted" });
    const answer = { id: ids[0], decision: "approve" };
    expect((await send(`${base}/resume`, { answers: [answer] })).body.code).toBe("interrupt_closed");
    expect((await send(`${base}/cancel`, {})).body.code).toBe("run_not_active");
  });
});

describe("an answer that is remembered for an agent", () => {
  const always = async (script: readonly Turn[], agents = ASKING) => {
    const begun = await interrupted(script, { input: "go" }, agents);
    const answer = { id: (await begun.open())[0]?.id, decision: "approve", remember: "agent" };
    expect(dataOf(await (await begun.resume(answer)).ended(), "done")[0]?.status).toBe("success");
    const asks = async (thread: string) => {
      const viewer = await post(`${begun.url}/threads/${thread}/runs`, { input: "again" });
      return dataOf(await viewer.ended(), "done")[0]?.status === "interrupted";
    };
    return { ...begun, asks };
  };
  const turn = [{ call: [run("rm one")] }, { say: "Done." }];

  test("applies in all of the user's threads with it, is listed, and can be deleted", async () => {
    const { url, asks } = await always([...turn, ...turn, ...turn]);
    expect(await asks("t2")).toBe(false);
    const { items } = await getJson(`${url}/agents/assistant/permissions`);
    expect(items).toMatchObject([{ decision: "allow", matcher: { arguments: { command: "rm one" } } }]);
    const rule = `${url}/agents/assistant/permissions/${items[0]?.id}`;
    expect((await fetch(rule, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(rule, { method: "DELETE" })).status).toBe(404);
    expect(await asks("t3")).toBe(true);
  });

  test("applies to exactly the same call, of that agent only", async () => {
    const other = `${ASKING}  other: { model: scripted:test, backend: { type: local }, permissions: {} }\n`;
    const { url, asks } = await always([...turn, { call: [run("rm two")] }, ...turn], other);
    expect(await asks("t2")).toBe(true);
    const viewer = await post(`${url}/threads/t3/runs`, { input: "go", agent: "other" });
    expect(dataOf(await viewer.ended(), "done")[0]?.status).toBe("interrupted");
  });
});

describe("a rule that a user creates over the API", () => {
  const script: Script = ({ messages }) =>
    messages.at(-1)?.role === "user" ? { call: [run("rm one")] } : { say: "Done." };
  const started = async (agents = ASKING) => {
    const { url } = await startServer({ script, agents });
    await send(`${url}/threads`, { id: "t1" });
    const status = async (thread: string) => {
      const viewer = await post(`${url}/threads/${thread}/runs`, { input: "go" });
      const events = await viewer.ended();
      const error = dataOf(events, "on_tool_end")[0]?.error;
      return error ?? dataOf(events, "done")[0]?.status;
    };
    return { url, status, rules: `${url}/threads/t1/permissions` };
  };

  test("for a thread applies in that thread only, from its next run until it is deleted", async () => {
    const { url, status, rules } = await started();
    const made = await send(rules, { allow: "execute", command_prefix: ["rm"] });
    expect(made).toMatchObject({
      status: 201,
      body: { decision: "allow", matcher: { tool: "execute", command_prefix: ["rm"] } },
    });
    expect(await status("t1")).toBe("success");
    expect(await status("t2")).toBe("interrupted");
    expect(await getJson(rules)).toEqual({ items: [made.body] });
    expect((await fetch(`${rules}/${made.body.id}`, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(`${rules}/${made.body.id}`, { method: "DELETE" })).status).toBe(404);
    expect(await status("t1")).toBe("interrupted");
    expect((await send(`${url}/threads/none/permissions`, { allow: "execute" })).status).toBe(404);
  });

  test("for an agent applies in all threads with it, and replaces the one with the same conditions", async () => {
    const { url, status } = await started();
    const rules = `${url}/agents/assistant/permissions`;
    const first = await send(rules, { allow: "execute", regex: "rm .*" });
    expect(await status("t1")).toBe("success");
    const second = await send(rules, { deny: "execute", regex: "rm .*", message: "Not here." });
    expect(second.body.id).toBe(first.body.id);
    expect(await getJson(rules)).toMatchObject({ items: [{ decision: "deny", message: "Not here." }] });
    expect(await status("t2")).toBe("Not here.");
    // One with other conditions stands beside it.
    await send(rules, { allow: "execute", regex: "ls .*" });
    expect((await getJson(rules)).items).toMatchObject([{ decision: "deny" }, { decision: "allow" }]);
    expect(await status("t3")).toBe("Not here.");
  });

  test("never allows a call that the agent's own rules or mode refuse", async () => {
    const agent = (permissions: string) =>
      `agents: { assistant: { model: "scripted:test", backend: { type: local }, permissions: ${permissions} } }`;
    for (const [permissions, words] of [
      ['{ rules: [{ deny: execute, command_prefix: ["rm"], message: "Never." }] }', /^Never/],
      ["{ mode: plan }", /^Plan mode/],
      ["{ mode: dont_ask }", /Permission denied/],
      ["{ rules: [{ deny: execute, scope: session, message: Never. }] }", /^Never/],
    ] as const)
      for (const decision of ["allow", "ask"]) {
        const { status, rules } = await started(agent(permissions));
        expect((await send(rules, { decision, matcher: { all: true }, priority: 9 })).status).toBe(201);
        expect(await status("t1"), `${permissions} ${decision}`).toMatch(words);
      }
  });

  test("is refused with the reason if it is invalid, too large or above the limit", async () => {
    const { rules } = await started();
    for (const [rule, words] of [
      [{}, /exactly one of allow, deny, ask/],
      [{ allow: "execute", scope: "global" }, /scope/],
      [{ allow: "execute", command_prefix: ["bash"] }, /may run anything/],
      [{ allow: "execute", regex: "(?=a)" }, /regex/],
      [{ allow: "execute", arguments: { command: "x".repeat(17_000) } }, /16384 characters/],
    ] as const) {
      const { status, body } = await send(rules, rule);
      expect([status, JSON.stringify(body)]).toEqual([400, expect.stringMatching(words)]);
    }
    for (let n = 0; n < 256; n++)
      expect((await send(rules, { id: `r${n}`, allow: `tool_${n}` })).status).toBe(201);
    expect(await send(rules, { allow: "one_more" })).toMatchObject({ body: { code: "limit_exceeded" } });
    expect((await fetch(rules, { method: "DELETE" })).status).toBe(204);
    expect(await getJson(rules)).toEqual({ items: [] });
  });
});

describe("a client tool", () => {
  const tools = [
    {
      name: "pick_colour",
      description: "Shows a colour picker.",
      parameters: { type: "object", properties: { count: { type: "integer" } }, required: ["count"] },
    },
  ];
  const body = { input: "go", tools };

  test("is called only with valid arguments, and cannot replace another tool", async () => {
    const call = { tool: "pick_colour", args: { count: "many" } };
    const { url } = await startServer({ script: [{ call: [call] }, { say: "Sorry." }], agents: ASKING });
    const events = await (await post(`${url}/threads/t1/runs`, body)).ended();
    expect(dataOf(events, "on_tool_end")[0]?.error).toMatch(/^Invalid arguments/);
    const taken = { input: "go", tools: [{ ...tools[0], name: "execute" }] };
    expect((await send(`${url}/threads/t2/runs`, taken)).body).toMatchObject({ code: "invalid_request" });
  });
});

test("repeating a resume with its key returns the run that it started, even after that run has ended", async () => {
  const { base, open, url } = await interrupted([{ call: [run("rm one")] }, { say: "Done." }]);
  const answers = [{ id: (await open())[0]?.id, decision: "approve" }];
  const resume = () => post(`${base}/resume`, { answers }, { "idempotency-key": "once" });
  const first = await resume();
  const second = await resume();
  expect(await second.ended()).toEqual(await first.ended());
  expect(await (await resume()).ended()).toEqual(await first.ended());
  expect((await getJson(`${url}/threads/t1/runs`)).items).toHaveLength(2);
});
