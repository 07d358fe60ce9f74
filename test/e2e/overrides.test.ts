import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/agent/core/model.ts";
import { dataOf } from "../support/drain.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { requestsTo } from "../support/native.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

const AGENTS = `
agents:
  helper:
    model: scripted:test
    backend: { type: local }
    hooks: { summarization: { trigger: 0.5 }, budgets: { tokens: 1000 } }
    permissions: { rules: [{ deny: execute }] }
  talker: { model: "scripted:test" }
`;

type Json = Record<string, unknown>;

async function serve(config: object = {}) {
  const asked: ModelRequest[] = [];
  const server = await startServer({
    agents: AGENTS,
    config,
    script: (request) => {
      asked.push(request);
      return { say: "ok" };
    },
  });
  const send = requestsTo(server.url);
  const change = (patch: unknown, agent = "helper", headers = {}) =>
    send("PATCH", `/agents/${agent}/overrides`, patch, headers);
  const hooksOf = async (headers = {}) =>
    (await send("GET", "/agents/helper", undefined, headers)).body.hooks as string[];
  const run = async (agent = "helper", headers = {}) =>
    (await post(`${server.url}/threads/t/runs`, { input: "go", agent }, headers)).ended();
  /** The tools that the model was offered last. */
  const offered = () => asked.at(-1)?.tools.map(({ name }) => name);
  return { ...server, asked, send, change, hooksOf, run, offered };
}

describe("a user's overrides of an agent", () => {
  test("take effect with the next run, and can be removed one by one or all at once", async () => {
    const { send, change, hooksOf, run, offered } = await serve({ store: "sqlite" });
    await run();
    expect(offered()).toContain("write_todos");
    const { status, body } = await change({ hooks: { todos: false, progress_reminder: { every: 2 } } });
    expect([status, body]).toMatchObject([
      200,
      { hooks: { todos: false, progress_reminder: { every: 2 } }, ignored: [] },
    ]);
    await run();
    expect(offered()).not.toContain("write_todos");
    expect(await hooksOf()).toContain("progress_reminder");
    expect(await hooksOf()).not.toContain("todos");
    await change({ hooks: { todos: null } });
    expect(await hooksOf()).toContain("todos");
    expect(await hooksOf()).toContain("progress_reminder");
    expect((await send("DELETE", "/agents/helper/overrides")).status).toBe(204);
    expect(await hooksOf()).not.toContain("progress_reminder");
    expect((await send("DELETE", "/agents/helper/overrides")).status).toBe(204);
  });

  test("can be offered in a form: the agent has a schema and the set options of each configurable hook", async () => {
    const { send, change } = await serve({ store: "sqlite" });
    const hooks = async () => {
      const { choices } = (await send("GET", "/agents/helper")).body as {
        choices: { hooks: (Json & { schema?: { properties: Record<string, Json> } })[] };
      };
      return new Map(choices.hooks.map((hook) => [hook.name, hook]));
    };
    const { changeable } = (await send("GET", "/agents/helper/overrides")).body;
    const before = await hooks();
    expect(Object.fromEntries([...before].map(([name, { may }]) => [name, may]))).toEqual(changeable);
    expect(before.get("todos")).toEqual({ name: "todos", may: "switch", active: true });
    expect(before.get("summarization")).toMatchObject({
      ...{ may: "configure", active: true, options: { trigger: 0.5 } },
      schema: {
        type: "object",
        additionalProperties: false,
        properties: { keep: { type: "number", default: 0.1, exclusiveMinimum: 0, maximum: 0.9 } },
      },
    });
    expect(before.get("summarization")?.schema?.properties.trigger?.description).toContain("context window");
    // What the operator set of other hooks stays the operator's.
    expect(before.has("budgets")).toBe(false);

    await change({ hooks: { summarization: { keep: 0.2 }, todos: false, progress_reminder: true } });
    const after = await hooks();
    expect(after.get("summarization")).toMatchObject({ options: { trigger: 0.5, keep: 0.2 } });
    expect(after.get("todos")).toMatchObject({ active: false });
    expect(after.get("progress_reminder")).toMatchObject({ active: true, options: {} });
  });

  test("apply to this user and this agent only", async () => {
    const { change, hooksOf, send } = await serve({ store: "sqlite", ...BEHIND_GATEWAY });
    const ada = asUser("ada");
    await change({ hooks: { todos: false } }, "helper", ada);
    expect(await hooksOf(ada)).not.toContain("todos");
    expect(await hooksOf(asUser("bob"))).toContain("todos");
    const { body } = await send("GET", "/agents", undefined, ada);
    const hooks = (body.items as { name: string; hooks: string[] }[]).map((agent) => [
      agent.name,
      agent.hooks.includes("todos"),
    ]);
    expect(hooks).toEqual([
      ["helper", false],
      ["talker", true],
    ]);
  });

  test("are all kept if they are made at once", async () => {
    const { change, send } = await serve({ store: "sqlite" });
    const names = ["todos", "memory", "skills", "trimming"];
    await Promise.all(names.map((name) => change({ hooks: { [name]: false } })));
    const { body } = await send("GET", "/agents/helper/overrides");
    expect(Object.keys(body.hooks as Json).toSorted()).toEqual(names.toSorted());
  });
});

describe("a change", () => {
  test("of options keeps the operator's other options", async () => {
    const { change, asked, run } = await serve();
    await change({ hooks: { summarization: { keep: 0.2 } } });
    expect((await run()).at(-1)?.event).toBe("done");
    expect(asked).toHaveLength(1);
    expect((await change({ hooks: { summarization: { keep: 2 } } })).body.detail).toMatch(
      /hooks\.summarization\.keep: must be at most 0\.9/,
    );
  });

  test("of the model applies to runs that name no model", async () => {
    const { change, run, send } = await serve();
    expect((await change({ model: "anthropic:claude-haiku-4-5" }, "talker")).status).toBe(200);
    expect((await run("talker")).at(-1)?.event).toBe("done");
    await change({ model: null }, "talker");
    expect((await send("GET", "/agents/talker/overrides")).body).not.toHaveProperty("model");
  });

  test.each<[string, unknown, RegExp, agent?: string]>([
    ["skills of an agent without a backend", { skills: { paths: ["s"] } }, /skills: .*no backend/, "talker"],
    ["an unknown hook", { hooks: { todoss: false } }, /hooks\.todoss: there is no hook.*`todos`/],
    ["an unknown option", { hooks: { trimming: { kep: 1 } } }, /hooks\.trimming\.kep: unknown key/],
    [
      "options of a hook that is only switched",
      { hooks: { todos: { a: 1 } } },
      /hooks\.todos: .*true or false/,
    ],
    ["a model that cannot be", { model: "gpt" }, /model: `gpt` must be provider:model/],
    ["a script out of the server's files", { model: "scripted:/etc/passwd" }, /model: /],
    ["skills without folders", { skills: { include: ["a"] } }, /skills\.paths: is missing/],
    [
      "globs that are long in all",
      { skills: { paths: ["s"], include: Array(9).fill("a".repeat(256)) } },
      /at most 2048 characters in total; it has 2304/,
    ],
    ["a broken glob", { skills: { paths: ["s"], include: ["{a"] } }, /include\[0\]|include\.0/],
    ["a prompt", { system_prompt: "Obey." }, /unknown key `system_prompt`/],
    ["tools", { tools: ["execute"] }, /unknown key `tools`/],
  ])("to %s is refused, with its path", async (_, patch, words, agent) => {
    const { change, send } = await serve();
    const { status, body } = await change(patch, agent);
    expect([status, body.code]).toEqual([400, "invalid_request"]);
    expect(body.detail).toMatch(words);
    expect((await send("GET", "/agents/helper/overrides")).body).toMatchObject({ ignored: [] });
  });

  test.each([
    ...["permissions", "guardrails", "budgets", "metering", "tracing", "timeout", "loop_detection"],
    ...["eviction", "subagents"],
  ])("never affects %s, which protects others", async (name) => {
    const { change, hooksOf, send } = await serve();
    const before = await hooksOf();
    for (const setting of [false, true, {}]) {
      const { status, body } = await change({ hooks: { [name]: setting } });
      expect([status, body.detail]).toEqual([400, expect.stringContaining(`hooks.${name}: `)]);
    }
    expect(await hooksOf()).toEqual(before);
    const { body } = await send("GET", "/agents/helper/overrides");
    expect(body.changeable).not.toHaveProperty(name);
    expect(body.changeable).toMatchObject({ todos: "switch", summarization: "configure" });
  });

  test.each(["filesystem", "retry"])("can turn %s off, but nothing else", async (name) => {
    const { change, hooksOf, run, offered } = await serve();
    for (const setting of [true, {}]) {
      const { status, body } = await change({ hooks: { [name]: setting } });
      expect([status, body.detail]).toEqual([400, expect.stringContaining("can only be turned off")]);
    }
    expect((await change({ hooks: { [name]: false } })).status).toBe(200);
    expect(await hooksOf()).not.toContain(name);
    await run();
    expect(offered()?.includes("read_file")).toBe(name !== "filesystem");
    await change({ hooks: { [name]: null } });
    expect(await hooksOf()).toContain(name);
  });

  test("returns not_found for an unknown agent", async () => {
    const { change, send } = await serve();
    expect((await change({ hooks: { todos: false } }, "helpr")).status).toBe(404);
    for (const method of ["GET", "DELETE"])
      expect((await send(method, "/agents/helpr/overrides")).status).toBe(404);
  });

  test("can give the agent skills from the user's own files", async () => {
    const { change, run, asked, url } = await serve();
    const skill = "---\nname: rhyme\ndescription: Rhymes.\n---\nRhyme.";
    await fetch(`${url}/backend/files/my/rhyme/SKILL.md`, { method: "PUT", body: skill });
    await change({ skills: { paths: ["/workspace/my"] } });
    await run();
    expect(JSON.stringify(asked.at(-1)?.system)).toContain("rhyme");
  });
});

test("an override that no longer matches the agent is ignored with a warning, and the run continues", async () => {
  const { change, run, send, dir, app } = await serve();
  await change({ hooks: { todos: false }, skills: { paths: ["s"] } });
  await writeFile(
    join(dir, "new.yaml"),
    AGENTS.replace("backend: { type: local }", "description: No files."),
  );
  await rename(join(dir, "new.yaml"), join(dir, "agents.yaml"));
  await app.reload();
  const events = await run();
  expect(dataOf(events, "warning")).toMatchObject([
    { code: "overrides_ignored", message: expect.stringMatching(/skills: .*no backend/) },
  ]);
  expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  const { body } = await send("GET", "/agents/helper/overrides");
  expect(body).toMatchObject({ hooks: { todos: false }, ignored: [{ path: "skills" }] });
  expect((await change({ hooks: { memory: false } })).status).toBe(200);
});
