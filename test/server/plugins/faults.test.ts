import { symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { plugin, project } from "./project.ts";

const tool = (name: string) =>
  `defineTool({ name: "${name}", description: "x", parameters: z.object({}), execute: () => "" })`;
const hook = (name: string, more = "") =>
  `defineHook({ name: "${name}", options: z.object({}), activeByDefault: () => false, create: () => ({ name: "${name}" }), ${more} })`;

/** A module each, and what is said of it, without the place in agents.yaml. */
const BROKEN: readonly (readonly [file: string, text: string, said: string])[] = [
  [
    "syntax.ts",
    `import "skein";\nexport default { hooks: [ };\n`,
    "./syntax.ts:2:27: SyntaxError: Expression expected",
  ],
  [
    "syntax.mjs",
    "export const a = 1;\n\nexport default { hooks: [ };\n",
    "./syntax.mjs:3:27: SyntaxError: Unexpected token '}'",
  ],
  [
    "enum.ts",
    "enum A { B }\nexport default A;\n",
    "./enum.ts:1:1: SyntaxError: TypeScript enum is not supported in strip-only mode",
  ],
  ["throws.ts", "export default {};\n  throw new Error('no database');\n", "./throws.ts:2:9: no database"],
  ["text.ts", "export default {};\nthrow 'oops';\n", "oops"],
  [
    "package.ts",
    'export {};\nimport "not-installed";\n',
    "./package.ts:2:8: cannot find the package `not-installed`; install it in the project of this file",
  ],
  [
    "beside.ts",
    'import "./deep/inner.ts";\nexport default {};\n',
    "./deep/inner.ts:1:15: there is no file `../nowhere.ts`",
  ],
  [
    "name.ts",
    'import { defineTol } from "skein";\nexport default defineTol;\n',
    "./name.ts:1:10: SyntaxError: The requested module 'skein' does not provide an export named 'defineTol'",
  ],
  [
    "empty.ts",
    "export const a = 1;\n",
    "./empty.ts: has no default export; write `export default definePlugin({ … })`",
  ],
  [
    "keys.ts",
    plugin("keys", "tols: []"),
    "./keys.ts: tols: is not a part of a plugin; did you mean `tools`?",
  ],
  [
    "second.ts",
    `import { definePlugin } from "skein";\nexport default [definePlugin({ name: "a1" }), { name: "B" }];\n`,
    "./second.ts: [1].name: must be 1 to 64 characters out of a-z 0-9 _ -, the first a letter or a digit",
  ],
  [
    "zod3.ts",
    `import { z } from "zod3";\n${plugin("zod3", 'tools: [defineTool({ name: "old", description: "x", parameters: z.object({}), execute: () => "" })]').replace(", z }", " }")}`,
    './zod3.ts:4:53: tool `old`: parameters must be a zod schema (zod 4); this is a zod 3 schema. Import `z` from "skein" or from zod 4.',
  ],
  [
    "raw.ts",
    `import { z } from "zod3";\nimport { definePlugin } from "skein";\nexport default definePlugin({ name: "raw", tools: [{}, { name: "t", parameters: z.object({}) }] });\n`,
    './raw.ts: tools[1].parameters: must be a zod schema (zod 4); this is a zod 3 schema. Import `z` from "skein" or from zod 4',
  ],
  [
    "place.ts",
    plugin("place", `hooks: [{ hook: ${hook("mine")}, before: "retyr" }]`),
    "plugin `place`: hooks: there is no hook `retyr`; did you mean `retry`?",
  ],
  [
    "taken.ts",
    plugin("taken", `tools: [${tool("ask_user")}], models: { openai: () => {} }, hooks: [${hook("todos")}]`),
    "plugin `taken`: hook `todos` is built in; rename it",
  ],
  ["one.ts", plugin("one", `tools: [${tool("same")}]`), ""],
  [
    "two.ts",
    plugin("two", `tools: [${tool("same")}]`),
    "plugin `two`: tool `same` is already in plugins[15] ./one.ts; rename it",
  ],
  [
    "late.ts",
    plugin("late", "routes: async () => {}"),
    "plugin `late` has `routes`, which need a restart to change. Name the plugin under `plugins` in server.yaml",
  ],
  [
    "backend.ts",
    plugin("backend", "backends: { mine: { options: z.string(), create: () => ({}) } }"),
    "./backend.ts: backends.mine.options: must be a `z.object`",
  ],
  [
    "both.ts",
    plugin("both", `hooks: [{ hook: ${hook("twice_placed")}, before: "retry", after: "retry" }]`),
    "./both.ts: hooks[0]: must have `before` or `after`: the name of another hook",
  ],
];

test("every fault in every plugin is reported with its location", async () => {
  const names = BROKEN.map(([file]) => `./${file}`);
  const { write, check, dir } = await project({
    ...Object.fromEntries(BROKEN.map(([file, text]) => [file, text])),
    "deep/inner.ts": 'export * from "../nowhere.ts";\n',
    "agents.yaml": `plugins:\n${[...names, "./absent.ts", "absent.ts", "nowhere"].map((name) => `  - ${name}\n`).join("")}agents: { a: {} }\n`,
    "node_modules/zod3/package.json": '{ "name": "zod3", "exports": "./index.js", "type": "module" }',
  });
  await write("absent.d", "");
  // As a project that has installed zod 3 would find it.
  await write("node_modules/zod3/index.js", `export * from "${resolve("node_modules/zod/v3/index.js")}";`);
  await symlink(resolve("node_modules/zod"), join(dir, "node_modules/zod"));
  const { code, lines } = await check();
  expect(code).toBe(1);
  const said = (at: number) =>
    lines
      .filter((line) => line.startsWith(`agents.yaml:${at + 2}:`))
      .map((line) => line.replace(/^\S+ plugins\[\d+\]: /, ""));
  for (const [at, [file, , expected]] of BROKEN.entries())
    expect([file, ...said(at)]).toEqual(expected === "" ? [file] : expect.arrayContaining([file, expected]));
  expect(said(14)).toHaveLength(3);
  expect(said(BROKEN.length)).toEqual([expect.stringMatching(/^there is no file `\.\/absent\.ts` in \//)]);
  expect(said(BROKEN.length + 1)).toEqual([
    expect.stringMatching(
      /^cannot find the package `absent\.ts` from \S+; for the file write `\.\/absent\.ts`$/,
    ),
  ]);
  expect(said(BROKEN.length + 2)).toEqual([
    expect.stringMatching(/^cannot find the package `nowhere` from \S+; install it there$/),
  ]);
  expect(lines.at(-1)).toMatch(/^\d+ problems$/);
});

test("plugins whose paths are equal in two folders are two plugins", async () => {
  const { check, dir } = await project({
    "own.ts": plugin("operators", `tools: [${tool("first")}]`),
    "server.yaml": "plugins: [./own.ts]\n",
    "team/own.ts": plugin("teams", `tools: [${tool("second")}]`),
    "team/agents.yaml": "plugins: [./own.ts]\nagents: { a: { tools: [first, second] } }\n",
  });
  const checked = await check({ AGENTS_FILE: join(dir, "team/agents.yaml") });
  expect(checked).toEqual({ code: 0, lines: ["ok: 1 agent"] });
});

test("plugins in server.yaml are checked together with those of the agents, and so is their scheme", async () => {
  const { check, write } = await project({
    "own.ts": plugin(
      "own",
      `auth: { name: "badge", authenticate: () => undefined }, tools: [${tool("twice")}]`,
    ),
    "mine.ts": plugin("mine", `tools: [${tool("twice")}]`),
    "server.yaml": "plugins: [./own.ts]\nauth: { scheme: bagde }\n",
    "agents.yaml": "plugins: [./mine.ts]\nagents: { a: {} }\n",
  });
  const first = await check();
  expect(first.lines).toEqual([
    "auth.scheme: `bagde` must be one of `none`, `api_key`, `jwt`, `header`, `badge`; did you mean `badge`?",
    "agents.yaml:1:11: plugins[0]: plugin `mine`: tool `twice` is already in server.yaml: plugins[0] ./own.ts; rename it",
    "2 problems",
  ]);
  await write("server.yaml", "plugins: [./own.ts, ./away.ts]\nauth: { scheme: badge }\n");
  await write("agents.yaml", "agents: { a: { tools: [twice] } }\n");
  const second = await check();
  expect(second.lines[0]).toMatch(/^server\.yaml: plugins\[1\]: there is no file `\.\/away\.ts` in \//);
  await write("server.yaml", "plugins: [./own.ts]\nauth: { scheme: badge }\n");
  expect(await check()).toEqual({ code: 0, lines: ["ok: 1 agent"] });
});
