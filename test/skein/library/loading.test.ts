import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { WireName } from "../../../src/server/config/wire-names.ts";

/** Prints what a program loads with a module: packages, wires, hooks that few agents have, and of Node's own SQLite and `fetch`. */
const programThatLoads = (module: string, next: string) => `
import { registerHooks } from "node:module";
const loaded = new Set();
registerHooks({
  resolve(name, context, next) {
    const found = next(name, context);
    const [name_] = /(?<=node_modules\\/)(?:@[^/]+\\/)?[^/]+|wires\\/[^/]+(?=\\/)|hooks\\/extra\\/[\\w-]+/.exec(found.url) ?? [];
    if (name_ ?? found.url.startsWith("node:sqlite")) loaded.add(name_ ?? found.url);
    return found;
  },
});
const getBuiltinModule = process.getBuiltinModule;
process.getBuiltinModule = (name) => (loaded.add(name), getBuiltinModule(name));
const module = await import(${JSON.stringify(new URL(`../../../src/${module}`, import.meta.url).href)});
${next}
if (process.moduleLoadList.some((name) => name.endsWith("/undici"))) loaded.add("fetch");
console.log(JSON.stringify([...loaded]));
`;

/** `next`: what is done then with `module`. */
function loadedWith(module: string, next = ""): string[] {
  const args = ["--input-type=module", "--eval", programThatLoads(module, next)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
}

const ON_DEMAND = [
  ...["@anthropic-ai/sdk", "openai", "@modelcontextprotocol/client", "@agentclientprotocol/sdk"],
  ...["ioredis", "pg", "node:sqlite", "dockerode", "undici", "standardwebhooks", "jose", "fetch"],
];

test("the library loads no provider, database, engine or server before it needs them", () => {
  const loaded = loadedWith("index.ts");
  expect(loaded).toContain("zod");
  for (const name of [...ON_DEMAND, "fastify", "pino"]) expect(loaded).not.toContain(name);
});

test("the server loads no provider, database or engine before it needs them", () => {
  const loaded = loadedWith("app.ts");
  expect(loaded).toContain("fastify");
  for (const name of ON_DEMAND) expect(loaded).not.toContain(name);
});

test("the server loads no wire before a client uses it", () => {
  const loaded = loadedWith("app.ts");
  for (const name of WireName.options) expect(loaded).not.toContain(`wires/${name}`);
  expect(loadedWith("wires/openai/index.ts")).toContain("wires/openai");
});

test("after startup, the server loads only the SDKs of its agents' models", () => {
  const next = `await module.loadSdks(["openai:gpt-5", "groq:llama", "scripted:demo", "unknown:model"]);`;
  const loaded = loadedWith("agent/models/index.ts", next);
  expect(loaded).toContain("openai");
  expect(loaded).not.toContain("@anthropic-ai/sdk");
});

const running = (settings: string) => `
const agent = module.createAgent({ model: module.scriptedModel([{ say: "ok" }]), hook_settings: ${settings} });
await agent.run("Hello.").result;
await agent.close();`;
const extras = (loaded: string[]) => loaded.filter((name) => name.startsWith("hooks/extra/"));

test("the code of a hook that few agents use is loaded by an agent that uses it", () => {
  expect(extras(loadedWith("app.ts"))).toEqual([]);
  expect(extras(loadedWith("index.ts", running("{ trimming: true, todos: true }")))).toEqual([]);
  const loaded = loadedWith("index.ts", running("{ notes: true, sliding_window: { max_messages: 9 } }"));
  expect(extras(loaded).toSorted()).toEqual(["hooks/extra/notes", "hooks/extra/sliding-window"]);
});
