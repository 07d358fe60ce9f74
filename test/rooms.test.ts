// Who may import whom, held against the import statements of src/, those of types included. The files of src/
// itself, those of src/app/ and the command line put the rooms together and may import every one. And what no test file may have: a
// way of its own to be skipped.

import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";

const ROOMS: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  protocol: [],
  core: ["protocol", "lib"],
  ...Object.fromEntries(
    ["hooks", "tools", "models", "backends", "agents", "quotas"].map((room) => [
      room,
      ["core", "protocol", "lib"],
    ]),
  ),
  // The settings of a room are described there.
  config: ["http/auth/config.ts", "http/wire-names.ts", "quotas/config.ts", "core", "protocol", "lib"],
  // The port to the counters, which no compare-and-set would do for, and the rules of what they count.
  stores: [...["quotas/store.ts", "quotas/rules.ts", "core", "protocol", "lib"]],
  telemetry: ["runs/services.ts", "core", "protocol", "lib"],
  runs: ["tools/client.ts", "agents", "quotas", "core", "protocol", "lib"],
  // What operators do over all users.
  admin: ["runs", "quotas", "core", "protocol", "lib"],
  // What tenants register and people decide over HTTP.
  http: [
    ...["hooks/permissions/stored-rules.ts", "tools/http/registration.ts", "tools/http/store.ts"],
    ...["admin", "runs", "agents", "quotas", "core", "protocol", "lib"],
  ],
  // The types of the parts that other rooms take.
  plugins: ["backends/own.ts", "http/auth/own-scheme.ts", "http/plugin-routes.ts", "core", "protocol", "lib"],
  library: [
    ...[
      // `createServer` imports it on demand.
      "app.ts",
      "plugins",
      "runs",
      "agents",
      "hooks",
      "tools",
      "models",
      "backends",
      "stores",
      "config",
      "quotas",
      "core",
      "protocol",
      "lib",
    ],
  ],
  // The public API only, as a program that imports `skein`.
  adapters: ["index.ts"],
  // The page: built for browsers.
  page: ["client", "protocol", "lib/search.ts"],
  client: ["protocol"],
};
/** Folders that put the rooms together, as the files of src/ itself do. */
const FREE = ["app", "cli"];
const HOMES: Readonly<Record<string, string>> = {
  ...{
    fastify: "http",
    "@fastify": "http",
    ioredis: "stores/redis",
    pg: "stores/postgres",
    "node:sqlite": "stores/sqlite",
  },
  ...{ "@anthropic-ai": "models/anthropic", openai: "models/openai", dockerode: "backends/docker" },
  ...{ "@azure": "models/openai", "google-auth-library": "models", preact: "page", marked: "page" },
  ...{ "prom-client": "telemetry", "@opentelemetry": "telemetry" },
  ...{ jose: "http", "@modelcontextprotocol": "tools/mcp", standardwebhooks: "lib" },
  ...{ "@agentclientprotocol": "cli/acp" },
  ...{ ajv: "lib", "ipaddr.js": "lib" },
};

type Sources = Readonly<Record<string, string>>;
const IMPORT = /(?:^(?:import|export)\s+(?:[\w\s{},*$]+\sfrom\s+)?|\bimport\()"([^"]+)"/gm;

function importsOf(file: string, text: string) {
  return [...text.matchAll(IMPORT)].map(([, name = ""]) => ({
    target: name.startsWith(".") ? posix.join(posix.dirname(file), name) : name,
    isOurs: name.startsWith("."),
  }));
}

const lies = (path: string, folders: readonly string[]) =>
  folders.some((folder) => path === folder || path.startsWith(`${folder}/`));

function trespasses(sources: Sources): string[] {
  return Object.entries(sources).flatMap(([file, text]) => {
    const [room = ""] = file.split("/");
    const allowed = file.includes("/") && !FREE.includes(room) ? ROOMS[room] : undefined;
    if (!allowed && file.includes("/") && !FREE.includes(room)) return [`${file}: \`${room}\` is no room`];
    const isAllowed = ({ target, isOurs }: { target: string; isOurs: boolean }) => {
      const home = HOMES[target] ?? HOMES[target.split("/")[0] ?? ""];
      return !allowed || (isOurs ? lies(target, [room, ...allowed]) : !home || lies(file, [home]));
    };
    return importsOf(file, text)
      .filter((each) => !isAllowed(each))
      .map(({ target }) => `${file} → ${target}`);
  });
}

function cycle(sources: Sources): string[] {
  const done = new Set<string>();
  const search = (file: string, path: readonly string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    done.add(file);
    const next = importsOf(file, sources[file] ?? "").filter((each) => each.isOurs);
    return next.map(({ target }) => search(target, [...path, file])).find((found) => found.length > 0) ?? [];
  };
  return (
    Object.keys(sources)
      .map((file) => search(file, []))
      .find((found) => found.length > 0) ?? []
  );
}

const SRC = Object.fromEntries(
  globSync("**/*.{ts,tsx}", { cwd: "src" }).map((file) => [file, readFileSync(`src/${file}`, "utf8")]),
);

test("every room imports only what it may", () => {
  expect(Object.entries(SRC).flatMap(([file, text]) => importsOf(file, text)).length).toBeGreaterThan(100);
  expect(trespasses(SRC)).toEqual([]);
});

test("no import goes round in a circle", () => expect(cycle(SRC)).toEqual([]));

test("a trespass and a circle are seen", () => {
  const sources = {
    "hooks/a.ts":
      'import { z } from "zod";\nimport type {\n  B,\n} from "../tools/b.ts";\nimport "../core/c.ts";',
    "core/c.ts": 'export * from "./d.ts";\nimport { fastify } from "fastify";',
    "core/d.ts": 'import type { E } from "./e.ts";\nimport type { C } from "./c.ts";',
    "client/x.ts":
      'import type { Run } from "../core/run.ts";\nimport type { Message } from "../core/message.ts";',
    "models/openai/client.ts":
      'const { OpenAI } = await import("openai");\nawait import("@anthropic-ai/sdk");',
    "attic/y.ts": "",
    "app.ts": 'import "./hooks/a.ts";\nimport "fastify";',
  };
  expect(trespasses(sources)).toEqual([
    "hooks/a.ts → tools/b.ts",
    "core/c.ts → fastify",
    "client/x.ts → core/run.ts",
    "client/x.ts → core/message.ts",
    "models/openai/client.ts → @anthropic-ai/sdk",
    "attic/y.ts: `attic` is no room",
  ]);
  expect(cycle(sources)).toEqual(["core/c.ts", "core/d.ts", "core/c.ts"]);
});

/** The files that every wire has. Histories are kept by the clients of the last two. */
const WIRE_FILES = ["index.ts", "input.ts", "table.ts", "history.ts", "errors.ts"];
const WIRES: Readonly<Record<string, readonly string[]>> = {
  "ai-sdk": WIRE_FILES,
  "ag-ui": WIRE_FILES,
  langgraph: WIRE_FILES,
  a2a: WIRE_FILES,
  openai: ["index.ts", "errors.ts"],
  "openai/responses": ["index.ts", "input.ts", "table.ts", "history.ts"],
  "openai/chat": ["index.ts", "input.ts", "table.ts"],
  mcp: ["index.ts", "input.ts", "table.ts", "errors.ts"],
};

test("every wire has the same files", () => {
  const missing = Object.entries(WIRES).flatMap(([wire, files]) =>
    files.map((file) => `http/wires/${wire}/${file}`).filter((file) => !(file in SRC)),
  );
  expect(missing).toEqual([]);
  const folders = new Set(
    Object.keys(SRC).flatMap((file) => /^http\/wires\/([^/]+)\//.exec(file)?.[1] ?? []),
  );
  expect([...folders].filter((wire) => !(wire in WIRES))).toEqual([]);
});

const SKIP = /\.(?:skip|skipIf|runIf|todo|only)\b|\(\{[\w, ]*\bskip\b[\w, ]*\}|\b(?:skip|todo|only): true/;

test("no test is skipped but by test/support/needing.ts", () => {
  const files = globSync("{test,bench,examples}/**/*.ts").filter(
    (file) => !["test/rooms.test.ts", "test/support/needing.ts"].includes(file),
  );
  expect(files.length).toBeGreaterThan(200);
  expect(files.filter((file) => SKIP.test(readFileSync(file, "utf8")))).toEqual([]);
});

test("a skip is seen", () => {
  const skips = [
    ...[
      "test.skip('x')",
      "describe.skipIf(!redis)('x')",
      "test.runIf(y)('x')",
      "test.todo('x')",
      "it.only('x')",
    ],
    ...[
      "test('x', async ({ skip }) => {})",
      "test('x', (context) => context.skip())",
      "test('x', { skip: true })",
    ],
  ];
  expect(skips.filter((line) => !SKIP.test(line))).toEqual([]);
});

test("docs/architecture.md has a row for every room", () => {
  const page = readFileSync("docs/architecture.md", "utf8");
  expect(Object.keys(ROOMS).filter((room) => !page.includes(`| \`${room}\` |`))).toEqual([]);
});
