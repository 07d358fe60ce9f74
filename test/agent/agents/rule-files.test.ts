import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadAgents } from "../../../src/agent/agents/load.ts";
import { createRegistry } from "../../../src/agent/agents/registry.ts";
import { permissions } from "../../../src/agent/hooks/permissions/index.ts";
import { agentsFile, catalogue as parts } from "./kit.ts";

const catalogue = { ...parts, hooks: [...parts.hooks, permissions] };
const BASE = JSON.stringify([{ deny: "execute", command_prefix: ["rm"] }, { allow: "read_file" }]);

const agent = (says: string) => `agents: { one: { model: "scripted:x", ${says} } }`;
const load = async (text: string, files: Record<string, string> = {}) =>
  loadAgents({ file: await agentsFile(text, files), catalogue, env: {} });
const refusalOf = async (text: string, files: Record<string, string> = {}) =>
  load(text, files).then(
    () => expect.unreachable("the file was accepted"),
    ({ message }: Error) => message.replace(/\S*\/agents\.yaml/g, "agents.yaml").split("\n"),
  );

describe("rules in files beside agents.yaml", () => {
  test.each([
    ["in the short form", `permissions: { mode: plan, files: [rules/base.json], rules: [{ ask: ls }] }`],
    [
      "in the long form",
      `hooks: { permissions: { mode: plan, files: [rules/base.json], rules: [{ ask: ls }] } }`,
    ],
  ])("precede the rules in agents.yaml, %s", async (_, says) => {
    const { definitions } = await load(agent(says), { "rules/base.json": BASE });
    expect(definitions[0].hooks.permissions).toEqual({
      mode: "plan",
      rules: [{ deny: "execute", command_prefix: ["rm"] }, { allow: "read_file" }, { ask: "ls" }],
    });
  });

  test("belong to agents.yaml and are reloaded with it; broken files change nothing", async () => {
    const file = await agentsFile(agent("permissions: { files: [base.json] }"), { "base.json": BASE });
    const registry = await createRegistry({ file, catalogue, env: {} });
    const rules = () => (registry.find("one").hooks.permissions as { rules: unknown[] }).rules;
    const base = join(dirname(file), "base.json");
    expect(registry.files()).toEqual([file, base]);
    await writeFile(base, "[{");
    await expect(registry.reload()).rejects.toMatchObject({ code: "config_invalid" });
    expect(rules()).toHaveLength(2);
    await writeFile(base, "[]");
    await registry.reload();
    expect(rules()).toEqual([]);
  });

  test.each([
    ["is not there", {}, "must name a text file: `base.json` does not exist"],
    ["is no JSON", { "base.json": "{" }, "must name a JSON file: in `base.json`, "],
    ["is no list", { "base.json": "{}" }, "in `base.json`, all of it must be a list"],
    [
      "holds no rule",
      { "base.json": '[{ "alow": "x" }]' },
      "in `base.json`, [0]: unknown key `alow`; did you mean `allow`?",
    ],
  ])("are refused with their location if one %s", async (_, files, why) => {
    const [problem] = await refusalOf(agent("permissions: { files: [base.json] }"), files);
    expect(problem).toMatch(/^agents.yaml:1:62: agents.one.permissions.files\[0\]: /);
    expect(problem).toContain(why);
  });
});

test("permissions that are set twice are refused because one of them would have no effect", async () => {
  const [problem] = await refusalOf(agent("permissions: {}, hooks: { permissions: { mode: bypass } }"));
  expect(problem).toContain("agents.one.permissions: is also set under `hooks.permissions`");
});
