import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Catalogue } from "../../../src/agent/agents/catalogue.ts";
import { createRegistry } from "../../../src/agent/agents/registry.ts";
import type { ModelSpec } from "../../../src/agent/core/agent.ts";
import { defineHook } from "../../../src/agent/core/hook.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { agentsFile, catalogue, made } from "./kit.ts";

const TWO = `
agents:
  coder:
    description: Writes code
    model: { provider: acme, model: large, base_url: "http://llm.internal/v1", api_key: sk-hidden }
    system_prompt: Never tell this.
    backend: { type: local }
    tools: [web_*, calculate, web_search, "mail_*"]
    hooks: { middle: { limit: 7 }, inner: false }
  writer: { model: acme:small }
`;

/** With every model that was made, newest last. */
async function registry(text: string, parts: Partial<Catalogue> = {}) {
  const file = await agentsFile(text);
  const asked: ModelSpec[] = [];
  const createModel = (spec: ModelSpec) => {
    asked.push(spec);
    return catalogue.createModel(spec);
  };
  const agents = await createRegistry({ file, catalogue: { ...catalogue, createModel, ...parts }, env: {} });
  return { file, agents, asked };
}

test("an agent suggests up to six short questions, which no other agent shares", async () => {
  const { agents } = await registry("agents: { coder: { suggestions: [Fix it, Test it] }, writer: {} }");
  expect(agents.list().map(({ suggestions }) => suggestions)).toEqual([["Fix it", "Test it"], undefined]);
  const refused = (suggestions: unknown) =>
    registry(JSON.stringify({ agents: { coder: { suggestions } } })).then(
      () => "taken",
      (error: Error) => error.message,
    );
  expect(await refused(["1", "2", "3", "4", "5", "6"])).toBe("taken");
  expect(await refused(["1", "2", "3", "4", "5", "6", "7"])).toContain("suggestions");
  expect(await refused(["x".repeat(201)])).toContain("suggestions");
});

test("explains why the default agent uses its model: the file, a variable, or no setting", async () => {
  const file = await agentsFile("agents: { coder: {} }");
  const reasonWith = async (env: Record<string, string>) =>
    (await createRegistry({ file, catalogue, env })).defaultModel?.().reason;
  expect(await reasonWith({ OPENAI_BASE_URL: "http://llm.internal/v1" })).toBe(
    "because OPENAI_BASE_URL is set",
  );
  expect(await reasonWith({})).toBe("because no key is set");
  const { agents, file: named } = await registry("agents: { coder: { model: acme:small } }");
  expect(agents.defaultModel?.()).toEqual({ name: "acme:small", reason: `which \`${named}\` names` });
});

test("runs that name no agent use the first one, unless one is called default", async () => {
  const { agents } = await registry(TWO);
  expect(agents.find(undefined).name).toBe("coder");
  expect(agents.find("writer").name).toBe("writer");
  const { agents: others } = await registry("agents: { coder: {}, default: {} }");
  expect(others.find(undefined).name).toBe("default");
  expect(others.list().map((agent) => [agent.name, agent.default])).toEqual([
    ["coder", false],
    ["default", true],
  ]);
});

test("refuses an unknown agent and suggests a known one", async () => {
  const { agents } = await registry(TWO);
  const refusal = { code: "invalid_request", message: "There is no agent `codr`; did you mean `coder`?" };
  expect(() => agents.find("codr")).toThrow(expect.objectContaining(refusal));
  expect(() => agents.find("toString")).toThrow("There is no agent `toString`");
  expect(() => agents.find("")).toThrow("There is no agent ``");
});

test("lists only the parts of an agent that users may see", async () => {
  const { agents } = await registry(TWO);
  const defaults = { context_window: 128_000, max_iterations: 25 };
  const coder = { name: "coder", description: "Writes code", default: true, backend: "local" };
  expect(agents.list()).toEqual([
    { ...defaults, ...coder, model: "acme:large", hooks: ["outer", "middle"] },
    { ...defaults, name: "writer", default: false, model: "acme:small", hooks: ["outer", "inner"] },
  ]);
  expect(JSON.stringify(agents.list())).not.toMatch(/hidden|internal|Never/);
});

test("builds an agent: tools by name and glob, hooks in their own order with their options", async () => {
  const { agents } = await registry(TWO);
  made.length = 0;
  const agent = await agents.build(agents.find("coder"), {}, {});
  expect(agent).toMatchObject({
    ...{ name: "coder", model: { name: "acme:large" }, maxIterations: 25 },
    system: [{ id: "instructions", text: "Never tell this.", cache: "static" }],
  });
  expect(agent.tools.map((tool) => tool.name)).toEqual(["calculate", "web_search", "web_fetch"]);
  expect(agent.hooks.map((hook) => hook.name)).toEqual(["outer", "middle"]);
  expect(made).toEqual([
    { hook: "outer", options: { wait: 5000 } },
    { hook: "middle", options: { limit: 7 } },
  ]);
});

test("a tenant's tool cannot have the name of a tool of the server or of a hook", async () => {
  const planning = defineHook({
    ...{ name: "planning", options: z.strictObject({}), activeByDefault: () => false, tools: ["plan"] },
    create: () => ({ name: "planning" }),
  });
  const { agents } = await registry("agents: { helper: { tools: ['*'] } }", { hooks: [planning] });
  const tool = (name: string) =>
    defineTool({ name, description: "A tenant's.", parameters: z.object({}), execute: () => "theirs" });
  const offered = ["calculate", "plan", "freight"].map(tool);
  const { tools } = await agents.build(agents.find("helper"), { tools: offered }, {});
  const theirs = tools.filter(({ description }) => description === "A tenant's.");
  expect(theirs.map(({ name }) => name)).toEqual(["freight"]);
});

test("creates the hooks for each run, but the model only once", async () => {
  const { agents } = await registry(TWO);
  const definition = agents.find("writer");
  const [one, other] = [await agents.build(definition, {}, {}), await agents.build(definition, {}, {})];
  expect(other.hooks[0]).not.toBe(one.hooks[0]);
  expect(other.model).toBe(one.model);
});

test("the code of a hook is loaded before its first run, and an error names a hook that cannot be loaded", async () => {
  const done: string[] = [];
  const late = (name: string, load: () => Promise<void>) => ({
    ...defineHook({
      ...{ name, options: z.strictObject({}), activeByDefault: () => false },
      create() {
        done.push(name);
        return { name };
      },
    }),
    load,
  });
  const hooks = [
    late("late", async () => void done.push("loaded")),
    late("lost", () => Promise.reject(new Error("no such file"))),
    late("thrown", () => {
      throw new Error("no such folder");
    }),
  ];
  const yaml =
    "agents: { a: { hooks: { late: true } }, b: { hooks: { lost: true } }, c: { hooks: { thrown: true } } }";
  const { agents } = await registry(yaml, { hooks });
  expect(done).toEqual([]);
  await agents.build(agents.find("a"), {}, {});
  expect(done).toEqual(["loaded", "late"]);
  await expect(agents.build(agents.find("b"), {}, {})).rejects.toThrow(/`lost`.*no such file/);
  await expect(agents.build(agents.find("c"), {}, {})).rejects.toThrow(/`thrown`.*no such folder/);
  expect(done).toEqual(["loaded", "late"]);
});

test("a hook's models come from the same source as the agent's own", async () => {
  const models: unknown[] = [];
  const asking = defineHook({
    ...{ name: "asking", options: z.strictObject({}), activeByDefault: () => true },
    create(_, { createModel }) {
      models.push(createModel("acme:judge").name, createModel("acme:small"));
      return { name: "asking" };
    },
  });
  const { agents } = await registry("agents: { writer: { model: acme:small } }", { hooks: [asking] });
  const { model } = await agents.build(agents.find("writer"), {}, {});
  expect(models).toEqual(["acme:judge", model]);
});

test("keeps at most 64 models, the most recently used ones", async () => {
  const { agents, asked } = await registry("agents: { a: { model: acme:own } }");
  const use = (model: string) => agents.build(agents.find("a"), {}, { model });
  for (let index = 0; index < 70; index++) await use(`acme:${index}`);
  asked.length = 0;
  await use("acme:69");
  await use("acme:10");
  expect(asked).toEqual([]);
  await use("acme:0");
  expect(asked).toEqual(["acme:0"]);
});

test("a run can use another model; with the same provider, it keeps the address and the key", async () => {
  const { agents, asked } = await registry(TWO);
  const coder = agents.find("coder");
  expect((await agents.build(coder, {}, { model: "acme:tiny:v2" })).model.name).toBe("acme:tiny:v2");
  expect(asked.at(-1)).toEqual({
    ...{ provider: "acme", model: "tiny:v2", base_url: "http://llm.internal/v1", api_key: "sk-hidden" },
  });
  expect((await agents.build(coder, {}, { model: "openai:gpt-5" })).model.name).toBe("openai:gpt-5");
  expect(asked.at(-1)).toBe("openai:gpt-5");
  expect((await agents.build(coder, {}, { model: "scripted:demo" })).model.name).toBe("scripted:demo");
});

test.each(["large", "", "unknown:large", "scripted:/etc/passwd", "scripted:../x.yaml", "scripted:x\n"])(
  "a run cannot use the model %j",
  async (model) => {
    const { agents } = await registry(TWO);
    await expect(agents.build(agents.find("coder"), {}, { model })).rejects.toThrow(
      expect.objectContaining({ name: "AppError", code: "invalid_request" }),
    );
  },
);

test("the built agent includes the user's changes, and the run's model is checked against the operator's", async () => {
  const hooks = catalogue.hooks.map((hook) =>
    hook.name === "middle" ? { ...hook, userMay: "configure" as const } : hook,
  );
  const { agents, asked } = await registry(TWO, { hooks });
  const coder = agents.find("coder");
  const user = { hooks: { middle: false, outer: false }, model: "openai:gpt-5" };
  const own = await agents.build(coder, {}, { user });
  expect(own.model.name).toBe("openai:gpt-5");
  // `outer` is not for users: it stays, and the run says so.
  expect(own.hooks.map(({ name }) => name)).toEqual(["overrides", "outer"]);
  expect((await agents.build(coder, {}, { user, model: "acme:tiny" })).model.name).toBe("acme:tiny");
  expect(asked.at(-1)).toMatchObject({ base_url: "http://llm.internal/v1", model: "tiny" });
  expect(agents.seenWith("coder", user)).toMatchObject({
    agent: { model: "openai:gpt-5", hooks: ["outer"] },
    ignored: [{ path: "hooks.outer" }],
  });
  expect((await agents.build(coder, {}, { user: "nonsense" })).model.name).toBe("acme:large");
  expect(agents.find("coder")).toBe(coder);
});

test("a reload applies the new file, active runs keep their old configuration, and a broken file changes nothing", async () => {
  const { agents, file } = await registry(TWO);
  const before = agents.find("writer");
  await writeFile(file, "agents: { writer: { modle: acme:huge } }");
  await expect(agents.reload()).rejects.toMatchObject({ code: "config_invalid" });
  expect(agents.list()).toHaveLength(2);
  await writeFile(file, "agents: { writer: { model: acme:huge } }");
  await agents.reload();
  expect(agents.find("writer").model).toBe("acme:huge");
  expect(() => agents.find("coder")).toThrow("There is no agent `coder`");
  expect(agents.list()).toHaveLength(1);
  expect((await agents.build(before, {}, {})).model.name).toBe("acme:small");
  await writeFile(file, TWO);
  // Only the later of two reloads counts.
  expect(await Promise.all([agents.reload(), agents.reload()])).toEqual([false, true]);
});
