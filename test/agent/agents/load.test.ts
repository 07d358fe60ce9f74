import { execFileSync } from "node:child_process";
import { symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { Catalogue } from "../../../src/agent/agents/catalogue.ts";
import { loadAgents } from "../../../src/agent/agents/load.ts";
import { withAliases } from "../../../src/agent/agents/model-aliases.ts";
import type { AgentDefinition, ModelSpec } from "../../../src/agent/core/agent.ts";
import { filesystem } from "../../../src/agent/hooks/filesystem/index.ts";
import { guardrails } from "../../../src/agent/hooks/guardrails/index.ts";
import { permissions } from "../../../src/agent/hooks/permissions/index.ts";
import { subagents } from "../../../src/agent/hooks/subagents/index.ts";
import { agentsFile, catalogue } from "./kit.ts";

async function load(
  text: string,
  options: { files?: Record<string, string>; env?: Record<string, string>; hooks?: Catalogue["hooks"] } = {},
) {
  const loaded = await loadAgents({
    file: await agentsFile(text, options.files),
    catalogue: { ...catalogue, hooks: [...catalogue.hooks, ...(options.hooks ?? [])] },
    env: options.env ?? {},
  });
  return { ...loaded, warnings: loaded.warnings.map(withoutFolder) };
}

async function only(text: string, options: Parameters<typeof load>[1] = {}): Promise<AgentDefinition> {
  const { definitions } = await load(text, options);
  expect(definitions).toHaveLength(1);
  return definitions[0];
}

async function problemsOf(loading: Promise<unknown>): Promise<string[]> {
  const error: Error = await loading.then(
    () => expect.unreachable("the file was accepted"),
    (error) => error,
  );
  expect(error).toMatchObject({ name: "AppError", code: "config_invalid" });
  return error.message.split("\n").map(withoutFolder);
}

const withoutFolder = (line: string) => line.replace(/\S*\/agents\.yaml/, "agents.yaml");

test("loads several agents and adds defaults", async () => {
  const { definitions } = await load(`
version: 1
defaults:
  model: acme:large
  max_iterations: 5
  hooks: { middle: true, inner: false }
agents:
  coder:
    description: Writes code
    backend: { type: local }
    hooks: { inner: true, outer: { wait: 1 } }
  writer: { model: acme:small, context_window: 4000 }
`);
  expect(definitions).toMatchObject([
    {
      ...{ name: "coder", description: "Writes code", model: "acme:large", context_window: 128_000 },
      ...{ max_iterations: 5, system: [] },
      backend: { type: "local", name: "coder" },
      hooks: { middle: true, inner: true, outer: { wait: 1 } },
    },
    {
      ...{ name: "writer", model: "acme:small", max_iterations: 5, context_window: 4000 },
      hooks: { middle: true, inner: false },
    },
  ]);
});

test("loads a file that consists of a single agent", async () => {
  const agent = await only(`
name: code-assistant
model: { provider: acme, model: large, temperature: 0.5 }
system_prompt: "You are a coding assistant."
context_window: 128000          # for summarization
backend:
  type: local
skills:
  paths:
    - /workspace/skills
memory:
  paths:
    - /workspace/AGENTS.md
`);
  expect(agent).toMatchObject({
    name: "code-assistant",
    model: { provider: "acme", model: "large", temperature: 0.5 },
    system: [{ id: "instructions", text: "You are a coding assistant.", cache: "static" }],
    skills: { paths: ["/workspace/skills"], include: [], exclude: [] },
    memory: { paths: ["/workspace/AGENTS.md"] },
    backend: { type: "local", name: "code-assistant" },
  });
});

test("reports every error at once, with its location and the correct form", async () => {
  const text = `version: 2
defaults:
  max_iteration: 5
  skills: { paths: [skills] }
agents:
  a:
    modle: acme:large
    model: large
    tools: [calcuate, "web_*", "mail_*", "[x"]
    hooks: { innr: false, middle: { limit: 0 }, vault: true }
    backend: { type: dockr }
  b:
    model: unknown:large
    memory: { paths: [] }
    system_prompt: { file: nowhere.md }
  c d: {}
  e:
`;
  expect(await problemsOf(load(text))).toEqual([
    "agents.yaml:1:10: version: `2` must be `1`",
    "agents.yaml:3:3: defaults: unknown key `max_iteration`; did you mean `max_iterations`?",
    "agents.yaml:4:3: defaults.skills: needs a `backend`: the backend stores its files",
    "agents.yaml:7:5: agents.a: unknown key `modle`; did you mean `model`?",
    "agents.yaml:8:12: agents.a.model: `large` must be provider:model, for example openai:gpt-5",
    "agents.yaml:9:13: agents.a.tools[0]: `calcuate` must be the name of a tool, or a glob; did you mean `calculate`?",
    "agents.yaml:9:42: agents.a.tools[3]: `[x` must be a glob: it has a `[` without `]`; write `\\[` for the character itself",
    "agents.yaml:10:14: agents.a.hooks: unknown key `innr`; did you mean `inner`?",
    "agents.yaml:10:44: agents.a.hooks.middle.limit: `0` must be at least 1",
    "agents.yaml:10:56: agents.a.hooks.vault: `true` must be `false`, or a map",
    "agents.yaml:11:22: agents.a.backend.type: `dockr` must be `local`",
    "agents.yaml:13:12: agents.b.model: There is no provider for `unknown:large`. Use `scripted` or `acme`.",
    "agents.yaml:14:5: agents.b.memory: needs a `backend`: the backend stores its files",
    "agents.yaml:14:15: agents.b.memory.paths: must have at least 1 entry",
    "agents.yaml:15:5: agents.b.system_prompt: must name a text file: `nowhere.md` does not exist",
    "agents.yaml:16:3: agents: `c d` must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -, and begin with a letter or a digit",
    "agents.yaml:17:5: agents.e: is empty: must be a map",
  ]);
});

test.each([
  ["", "agents.yaml:1:1: is empty: must be a map"],
  ["[]", "agents.yaml:1:1: must be a map, not a list"],
  ["version: 1", "agents.yaml:1:1: agents: is missing: must be a map"],
  ["agents: {}", "agents.yaml:1:1: agents: must contain at least one agent"],
  ["agents: [{ name: a }]", "agents.yaml:1:1: agents: must be a map, not a list"],
  ["name: a\nmodle: x", "agents.yaml:2:1: unknown key `modle`; did you mean `model`?"],
  ["agents:\n  a: {}\n  a: {}", "agents.yaml:3:3: duplicate key `a`; keep one of them"],
  ["agents:\n  __proto__: {}", "agents.yaml:2:3: `__proto__` cannot be a key; choose another name"],
  [
    "agents: { a: { backend: local } }",
    "agents.yaml:1:25: agents.a.backend: `local` must be a map: write { type: local }",
  ],
  [
    "agents: { a: { system_prompt: prompts/a.md } }",
    expect.stringContaining("looks like a path: write { file: … }"),
  ],
  [
    "agents: { a: { temperature: 0.5 } }",
    expect.stringContaining("it belongs in `model: { …, temperature: … }`"),
  ],
  [
    "agents:\n  a:\n    model: x:y\n     tools: [x]",
    "agents.yaml:3:12: the indentation is wrong: keys of one map must begin in the same column",
  ],
  [
    "agents:\n  a:\n    system_prompt: Rule one: be brief",
    "agents.yaml:3:20: a text with `: ` in it must be in quotes",
  ],
  [
    "agents: { a: { model: ['openai:gpt-5', 'acme:x'] } }",
    "agents.yaml:1:16: agents.a.model: must be one model; others go into its `fallback: [ … ]`",
  ],
  [
    "agents: { a: { backend: { type: local }, memory: AGENTS.md } }",
    "agents.yaml:1:50: agents.a.memory: `AGENTS.md` must be a map: write { paths: [ … ] }",
  ],
  [
    "mcp_servers: { m: { command: npx -y foo } }\nagents: { a: {} }",
    expect.stringContaining("must be one program; put its arguments in `args`"),
  ],
  [
    "mcp_servers: { m: { command: npx, url: 'http://x.y' } }\nagents: { a: {} }",
    expect.stringContaining("must have `command` or `url`, not both"),
  ],
  [
    "agents: { a: { identity: Eve., system_prompt: [{ id: header, text: x }, { id: identity, text: Ada. }] } }",
    "agents.yaml:1:26: agents.a.identity: is also a block of `system_prompt`, which comes first there; keep one of them",
  ],
  [
    "agents: { a: { system_prompt: [{ id: a, text: x }, { id: a, text: y }] } }",
    "agents.yaml:1:16: agents.a.system_prompt: has two blocks with the id `a`; give each block a unique id",
  ],
  ["agents: { -a: {} }", expect.stringContaining("agents: `-a` must be 1 to 64 characters")],
])("refuses %j", async (text, problem) => expect(await problemsOf(load(text))).toEqual([problem]));

test("refuses a missing file, and explains how to name another one", async () => {
  const loading = loadAgents({ file: "/nowhere/agents.yaml", catalogue, env: {} });
  await expect(loading).rejects.toThrow(
    "`/nowhere/agents.yaml` does not exist; AGENTS_FILE names the file that describes the agents",
  );
});

test("an agent without a model uses one that has a key or an address", async () => {
  const modelWith = async (env: Record<string, string>) => (await only("agents: { a: {} }", { env })).model;
  expect(await modelWith({})).toBe("scripted:demo");
  expect(await modelWith({ ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k" })).toBe(
    "anthropic:claude-sonnet-4-5",
  );
  expect(await modelWith({ ANTHROPIC_BASE_URL: "http://localhost:1" })).toBe("anthropic:claude-sonnet-4-5");
  expect(await modelWith({ OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "" })).toBe("openai:gpt-5-mini");
  expect(await modelWith({ OPENAI_BASE_URL: "http://localhost:1" })).toBe("openai:gpt-5-mini");
});

test("warns about a key that is missing from the environment, with its location", async () => {
  const text = "agents:\n  a:\n    model: { provider: acme, model: x, api_key_env: ACME_KEY }\n  b: {}\n";
  expect((await load(text)).warnings).toEqual(["agents.yaml:3:5: agents.a.model: needs ACME_KEY"]);
});

test("warns about a rule that denies an option, because the option has other spellings", async () => {
  const text = `agents:
  a:
    permissions:
      rules:
        - { deny: execute, command_prefix: [sudo, git push --force] }
        - { ask: execute, regex: "rm -rf" }
        - { deny: execute, command_prefix: [rm] }
        - { allow: execute, command_prefix: [ls -l] }
`;
  const told = (option: string, program: string) =>
    `names an option in \`${option}\`, but programs accept other spellings of it; name only \`${program}\`, and allow the uses that may run`;
  expect((await load(text, { hooks: [permissions] })).warnings).toEqual([
    `agents.yaml:5:11: agents.a.permissions.rules[0]: ${told("git push --force", "git push")}`,
    `agents.yaml:6:11: agents.a.permissions.rules[1]: ${told("rm -rf", "rm")}`,
  ]);
});

test("warns about a tool that is not built in, because a tenant may have registered it, but never about a hook's tool", async () => {
  const text = "agents:\n  a:\n    tools: [read_file, weather, read_fle, calculate, 'x_*', execute_query]\n";
  expect((await load(text, { hooks: [filesystem] })).warnings).toEqual([
    "agents.yaml:3:24: agents.a.tools[1]: `weather` is not a built-in tool. Only tenants that have registered a tool with this name have it.",
    "agents.yaml:3:33: agents.a.tools[2]: `read_fle` is not a built-in tool; did you mean `read_file`? Only tenants that have registered a tool with this name have it.",
    "agents.yaml:3:61: agents.a.tools[5]: `execute_query` is not a built-in tool; did you mean `execute`? Only tenants that have registered a tool with this name have it.",
  ]);
});

test("warns about an MCP server whose program or folder is missing, and about variables in other notations", async () => {
  const text = `mcp_servers:
  none: { command: no-such-program, cwd: ./none }
  key: { command: ./server.js, env: { KEY: $KEY } }
  ok: { command: sh, cwd: / }
agents: { a: {} }
`;
  const until = "the MCP server cannot start until it exists";
  expect((await load(text, { env: { PATH: process.env.PATH ?? "" } })).warnings).toEqual([
    `agents.yaml:2:20: mcp_servers.none.command: there is no program \`no-such-program\`; ${until}`,
    `agents.yaml:2:42: mcp_servers.none.cwd: there is no folder \`./none\`; ${until}`,
    `agents.yaml:3:19: mcp_servers.key.command: there is no program \`./server.js\`; ${until}`,
    expect.stringMatching(/^agents.yaml:3:44: mcp_servers.key.env.KEY: `\$KEY` is used as a literal value/),
  ]);
});

test("warns about subagents that can get no tasks because the list of tools omits every tool for that", async () => {
  const text = (tools: string) => `agents:\n  a:\n    subagents: [b]\n    tools: [${tools}]\n  b: {}\n`;
  const warnings = async (tools: string) =>
    (await load(text(tools), { hooks: [filesystem, subagents] })).warnings;
  expect(await warnings("read_file")).toEqual([
    "agents.yaml:3:5: agents.a.subagents: get no tasks: `tools` leaves out list_agents, delegate, task, start_task, check_tasks, wait_tasks, cancel_task",
  ]);
  expect(await warnings("")).toHaveLength(1);
  expect(await warnings("read_file, task")).toEqual([]);
  expect(await warnings("calculate")).toEqual([]);
});

test("an agent can name other agents and their backend, or all of them at once", async () => {
  const text =
    "defaults: { subagents: [lead, coder] }\nagents: { lead: {}, coder: { subagents: [{ agent: lead, backend: own }] } }";
  expect((await load(text)).definitions.map(({ subagents }) => subagents)).toEqual([
    ["lead", "coder"],
    [{ agent: "lead", backend: "own" }],
  ]);
});

test("refuses an unknown subagent, and the agent itself, with their location", async () => {
  const text = "agents:\n  lead: { subagents: [codr, lead, { agent: nemo }] }\n  coder: {}\n";
  expect(await problemsOf(load(text))).toEqual([
    expect.stringMatching(
      /:2:23: agents\.lead\.subagents\[0\]: there is no agent `codr`; did you mean `coder`/,
    ),
    expect.stringMatching(/:2:29: agents\.lead\.subagents\[1\]: is the agent itself/),
    expect.stringMatching(/:2:44: agents\.lead\.subagents\[2\]\.agent: there is no agent `nemo`/),
  ]);
});

test("keeps the blocks of a system prompt unchanged and in order", async () => {
  const blocks = "[{ id: header, text: ' First. ' }, { id: identity, text: You are Ada. }]";
  // A name that every object has is a name like any other.
  expect((await only(`agents: { constructor: { system_prompt: ${blocks} } }`)).system).toEqual([
    { id: "header", text: " First. ", cache: "static", place: "identity" },
    { id: "identity", text: "You are Ada.", cache: "static", place: "identity" },
  ]);
});

test("collects the models that the file names in agents, fallbacks and hooks", async () => {
  const text = `
models:
  fast: acme:small
  smart: { provider: acme, model: large, fallback: [fast, acme:tiny] }
  best: smart
agents:
  a: { model: best }
  b: { model: { provider: acme, model: own, fallback: [fast] } }
`;
  const { definitions, models, catalogue } = await load(text);
  const made: ModelSpec[] = [];
  const createModel = (spec: ModelSpec) => {
    made.push(spec);
    return catalogue.createModel(spec);
  };
  const named = withAliases({ ...catalogue, createModel }, models);
  for (const { model } of definitions) named.createModel(model);
  expect(made).toEqual([
    { provider: "acme", model: "large", fallback: ["acme:small", "acme:tiny"] },
    { provider: "acme", model: "own", fallback: ["acme:small"] },
  ]);
  expect(named.createModel("fast").name).toBe("acme:small");
});

test("refuses a model name that is misspelt or circular, with its location", async () => {
  const text = `
models:
  fast: acme:small
  loop: round
  round: loop
  judge: { provider: acme, model: m, fallback: [acme:x, fsat] }
agents:
  a: { model: fsat }
  b:
    model: fast
    hooks: { guardrails: { input: { judge: { policy: Be kind., model: unknown:m } } } }
`;
  expect(await problemsOf(load(text, { hooks: [guardrails] }))).toEqual([
    "agents.yaml:4:9: models.loop: `round` refers back to itself: round → loop → round.",
    "agents.yaml:5:10: models.round: `loop` refers back to itself: loop → round → loop.",
    "agents.yaml:6:57: models.judge.fallback[1]: There is no model `fsat` under `models`; did you mean `fast`?",
    "agents.yaml:8:15: agents.a.model: There is no model `fsat` under `models`; did you mean `fast`?",
    "agents.yaml:11:14: agents.b.hooks.guardrails: There is no provider for `unknown:m`. Use `scripted` or `acme`.",
  ]);
});

test("begins the prompt with the agent's name and description if `identity` is true", async () => {
  const text = "agents: { ada: { identity: true, description: Writes code. }, bob: { identity: true } }";
  const { definitions } = await load(text);
  expect(definitions.map(({ system }) => system[0]?.text)).toEqual([
    "<identity>\nYou are `ada`.\nWrites code.\n</identity>",
    "<identity>\nYou are `bob`.\n</identity>",
  ]);
});

test("combines the agent's identity, task, method and knowledge, from files too, in this order", async () => {
  const files = { "docs/project.md": "Skein. </project_context> <b>\n", "prompts/a.md": "You write code." };
  const text = `
agents:
  a:
    context: [We ship on Fridays., { file: docs/project.md }]
    behavioral_hints: true
    system_prompt: { file: prompts/../prompts/a.md }
    identity: You are Ada.
  b: { behavioral_hints: false }
`;
  const [a, b] = (await load(text, { files })).definitions;
  expect(a?.system).toEqual([
    { id: "identity", text: "<identity>\nYou are Ada.\n</identity>", cache: "static" },
    { id: "instructions", text: "You write code.", cache: "static" },
    {
      id: "behavioral_constraints",
      text: expect.stringMatching(
        /^<behavioral_constraints>\n- Do what the user asked for[\s\S]*<\/behavioral_constraints>$/,
      ),
      cache: "static",
    },
    {
      id: "project_context",
      text: "<project_context>\nWe ship on Fridays.\n\n---\n\nSkein. <\\/project_context> <b>\n</project_context>",
      cache: "static",
    },
  ]);
  expect(b?.system).toEqual([]);
});

test("refuses context that is missing, empty or too large, with its location", async () => {
  const files = { "big.md": "x".repeat(200 * 1024) };
  const text = `agents:
  a: { context: [ok, { file: nowhere.md }, { file: ../x.md }] }
  b: { context: [{ file: big.md }, { file: ./big.md }] }
  c: { context: [], identity: " " }
  d: { context: text }
`;
  expect(await problemsOf(load(text, { files }))).toEqual([
    "agents.yaml:2:22: agents.a.context[1]: must name a text file: `nowhere.md` does not exist",
    "agents.yaml:2:44: agents.a.context[2]: must be in the folder of this file or below it: `../x.md` is not",
    "agents.yaml:3:8: agents.b.context: must contain at most 262144 characters in total; it contains 409607",
    "agents.yaml:4:8: agents.c.context: must have at least 1 entry",
    "agents.yaml:4:31: agents.c.identity: ` ` must not be empty",
    "agents.yaml:5:17: agents.d.context: `text` must be a list",
  ]);
});

test("refuses a system prompt outside the folder, in a missing file, or that is too large", async () => {
  const files = { "empty.md": " \n", "big.md": "x".repeat(256 * 1024 + 1), "folder/x.md": "x" };
  const outside = (path: string) => `must be in the folder of this file or below it: \`${path}\` is not`;
  const isFile = (path: string, why: string) => `must name a text file: \`${path}\` ${why}`;
  const refusals: Record<string, (path: string) => string> = {
    ...{ "/etc/passwd": outside, "../../../../../../etc/passwd": outside, "..": outside },
    ...{ "link.md": outside, "etc/passwd": outside },
    folder: (path) => isFile(path, "is not a file"),
    "pipe.md": (path) => isFile(path, "is not a file"),
    "empty.md": (path) => isFile(path, "is empty"),
    "big.md": (path) => isFile(path, "is larger than 256 KiB"),
  };
  for (const [path, refusal] of Object.entries(refusals)) {
    const file = await agentsFile(`agents: { a: { system_prompt: { file: ${path} } } }`, files);
    await symlink("/etc/passwd", join(dirname(file), "link.md"));
    await symlink("/etc", join(dirname(file), "etc"));
    execFileSync("sh", ["-c", "mkfifo pipe.md"], { cwd: dirname(file) });
    const problems = await problemsOf(loadAgents({ file, catalogue, env: {} }));
    expect(problems).toEqual([`agents.yaml:1:16: agents.a.system_prompt: ${refusal(path)}`]);
  }
});

test("a flow rule with a tool that the agent cannot have causes a warning, and a rule with a mistake an error", async () => {
  const rules = (flow: string) => `
agents:
  coder: { model: "acme:large", permissions: { flow: [${flow}] } }
mcp_servers: { mail: { command: "${process.execPath}" } }
`;
  const hooks = [permissions];
  const after = 'after: ["mcp__mail__*", "mcp__mai__*", frieght, "*"]';
  const { warnings } = await load(rules(`{ ${after}, deny: [frieght] }`), { hooks });
  expect(warnings.map((line) => line.replace(/^\S+ /, ""))).toEqual([
    "agents.coder.permissions.flow[0].after[1]: `mcp__mai__*` matches no tool: there is no MCP server `mai` under `mcp_servers`; did you mean `mail`?",
    expect.stringMatching(
      /^agents\.coder\.permissions\.flow\[0\]\.after\[2\]: `frieght` is not a built-in tool\. Only/,
    ),
    expect.stringMatching(/^agents\.coder\.permissions\.flow\[0\]\.deny\[0\]: `frieght` is not/),
  ]);
  const problems = await problemsOf(
    load(rules('{ after: [a] }, { after: [], ask: [a] }, { after: [a], ask: ["{"], becuase: x }'), { hooks }),
  );
  expect(problems.join("\n")).toMatch(
    /flow\[0\]: must have `ask` or `deny`[\s\S]*flow\[1\]\.after[\s\S]*flow\[2\][\s\S]*`becuase`/,
  );
});
