// Who may import whom, held against the import statements of src/, those of types included. The files of src/
// itself, those of src/skein/app/ and the command line put the rooms together and may import every one. And what no test file may have: a
// way of its own to be skipped.

import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";

/** The rooms, and the parts of those that have parts: what each may import besides itself. */
const LANGUAGE = ["agent/core", "protocol", "lib"];
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  lib: ["../package.json"],
  protocol: [],
  client: ["protocol"],
  // Built for browsers.
  page: ["client", "protocol", "lib/search.ts"],

  "agent/core": ["protocol", "lib"],
  ...Object.fromEntries(["hooks", "tools", "models", "agents"].map((part) => [`agent/${part}`, LANGUAGE])),

  sandbox: LANGUAGE,

  "engine/quotas": LANGUAGE,
  // The port to the counters, which no compare-and-set would do for, and the rules of what they count.
  "engine/stores": ["engine/quotas/store.ts", "engine/quotas/rules.ts", ...LANGUAGE],
  "engine/runs": ["engine/quotas", "agent/agents", "agent/tools/client.ts", ...LANGUAGE],
  "engine/admin": ["engine/temporary-threads/index.ts", "engine/runs", "engine/quotas", ...LANGUAGE],
  ...Object.fromEntries(
    ["schedules", "triggers", "webhooks", "audit", "vault", "temporary-threads"].map((noun) => [
      `engine/${noun}`,
      ["engine/due-worker.ts", "engine/runs", "engine/quotas", ...LANGUAGE],
    ]),
  ),
  engine: LANGUAGE,

  "server/auth": ["engine/quotas", ...LANGUAGE],
  // The settings of a part are described there.
  "server/config": ["server/auth/config.ts", "engine/quotas/config.ts", ...LANGUAGE],
  "server/telemetry": ["engine/audit/entry.ts", "engine/runs/services.ts", ...LANGUAGE],
  "server/http": [
    ...[
      "server/auth",
      "server/config/wire-names.ts",
      ...["engine/admin", "engine/schedules", "engine/triggers", "engine/webhooks", "engine/audit"],
      "engine/vault",
      "engine/temporary-threads",
      "engine/runs",
      "engine/quotas",
      "agent/agents",
    ],
    // What tenants register and people decide over HTTP.
    ...["agent/hooks/permissions/stored-rules.ts", "agent/tools/http/registration.ts"],
    ...["agent/tools/http/store.ts", ...LANGUAGE],
  ],
  // The types of what a plugin may bring.
  "server/plugins": [
    ...["sandbox/own.ts", "server/auth/own-scheme.ts", "server/http/plugin-routes.ts", ...LANGUAGE],
  ],

  wires: [
    ...["server", "engine/runs", "engine/temporary-threads", "engine/schedules/schedule.ts"],
    ...["agent/agents", ...LANGUAGE],
  ],
  // An agent for editors: it talks to a server as any other client does.
  "wires/acp": ["wires", "client", "../package.json", ...LANGUAGE],

  "skein/library": [
    // `createServer` imports it on demand.
    "app.ts",
    ...["server/plugins", "server/config", "engine", "sandbox", "agent", "protocol", "lib"],
  ],
  // The public API only, as a program that imports `skein`.
  "skein/adapters": ["index.ts"],
};
/** What puts the rooms together, as the files of src/ itself do. */
const FREE = ["skein/app", "skein/cli"];
const HOMES: Readonly<Record<string, string | readonly string[]>> = {
  ...{ fastify: ["server", "wires"], "@fastify": ["server", "wires"], jose: "server/auth" },
  ...{ "prom-client": "server/telemetry", "@opentelemetry": "server/telemetry" },
  ...{ ioredis: "engine/stores/redis", pg: "engine/stores/postgres", "node:sqlite": "engine/stores/sqlite" },
  ...{ "@anthropic-ai": "agent/models/anthropic", openai: "agent/models/openai" },
  ...{ "@azure": "agent/models/openai", "google-auth-library": "agent/models" },
  ...{ "@modelcontextprotocol": "agent/tools/mcp", dockerode: "sandbox/docker" },
  ...{ "@agentclientprotocol": "wires/acp" },
  ...{ preact: "page", marked: "page" },
  ...{ ajv: "lib", "ipaddr.js": "lib", standardwebhooks: "lib" },
  ...{ htmlparser2: "lib/web-documents", linkedom: "lib/web-documents", unpdf: "lib/web-documents" },
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

/** The room of a file, or its part of the room. Nothing for the files of src/ itself. */
const roomOf = (file: string) =>
  [file.split("/").slice(0, 2).join("/"), file.split("/")[0] ?? ""].find(
    (room) => room in ROOMS || FREE.includes(room),
  );

function trespasses(sources: Sources): string[] {
  return Object.entries(sources).flatMap(([file, text]) => {
    const room = roomOf(file);
    if (!room && file.includes("/")) return [`${file}: in no room`];
    const allowed = room ? ROOMS[room] : undefined;
    const isAllowed = ({ target, isOurs }: { target: string; isOurs: boolean }) => {
      if (isOurs) return !room || !allowed || lies(target, [room, ...allowed]);
      const homes = HOMES[target] ?? HOMES[target.split("/")[0] ?? ""];
      return !allowed || !homes || lies(file, [homes].flat());
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

/** What few need: loaded when an agent, or the machine, needs it. */
const ON_DEMAND = ["agent/hooks/extra", "sandbox/docker/loop-disks", "sandbox/docker/moving"];

function loadedAtOnce(sources: Sources): string[] {
  return Object.entries(sources).flatMap(([file, text]) =>
    importsOf(file, text.replaceAll(/\bimport\("[^"]+"\)|^import type [^;]+;/gm, ""))
      .filter(({ target }) => ON_DEMAND.some((folder) => lies(target, [folder]) && !lies(file, [folder])))
      .map(({ target }) => `${file} → ${target}`),
  );
}

test("rarely used code is imported only on demand", () => {
  expect(loadedAtOnce(SRC)).toEqual([]);
  const sources = {
    "agent/hooks/a.ts": 'import { b } from "./extra/b.ts";\nawait import("./extra/c.ts");',
    "agent/hooks/extra/b.ts": 'import "./c.ts";',
  };
  expect(loadedAtOnce(sources)).toEqual(["agent/hooks/a.ts → agent/hooks/extra/b.ts"]);
});

test("there are no circular imports", () => expect(cycle(SRC)).toEqual([]));

test("a forbidden import and a circular one are found", () => {
  const sources = {
    "agent/hooks/a.ts":
      'import { z } from "zod";\nimport type {\n  B,\n} from "../tools/b.ts";\nimport "../core/c.ts";',
    "agent/core/c.ts": 'export * from "./d.ts";\nimport { fastify } from "fastify";',
    "agent/core/d.ts": 'import type { E } from "./e.ts";\nimport type { C } from "./c.ts";',
    "client/x.ts": 'import type { Run } from "../agent/core/run.ts";\nimport "../protocol/message.ts";',
    "agent/models/openai/client.ts":
      'const { OpenAI } = await import("openai");\nawait import("@anthropic-ai/sdk");',
    "server/http/own.ts": 'import { fastify } from "fastify";\nimport "../../wires/index.ts";',
    "wires/mcp/own.ts": 'import type { FastifyReply } from "fastify";\nimport "../../client/client.ts";',
    "wires/acp/own.ts": 'import "../../client/client.ts";\nimport "../reply.ts";',
    "skein/cli/own.ts": 'import "../../wires/index.ts";',
    "agent/own.ts": "",
    "attic/y.ts": "",
    "app.ts": 'import "./agent/hooks/a.ts";\nimport "fastify";',
  };
  expect(trespasses(sources)).toEqual([
    "agent/hooks/a.ts → agent/tools/b.ts",
    "agent/core/c.ts → fastify",
    "client/x.ts → agent/core/run.ts",
    "agent/models/openai/client.ts → @anthropic-ai/sdk",
    "server/http/own.ts → wires/index.ts",
    "wires/mcp/own.ts → client/client.ts",
    "agent/own.ts: in no room",
    "attic/y.ts: in no room",
  ]);
  expect(cycle(sources)).toEqual(["agent/core/c.ts", "agent/core/d.ts", "agent/core/c.ts"]);
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
  // Its requests come from an editor over stdio; `turn.ts` begins what one asks for.
  acp: ["index.ts", "turn.ts", "table.ts", "errors.ts"],
};

test("every wire has the same files", () => {
  const missing = Object.entries(WIRES).flatMap(([wire, files]) =>
    files.map((file) => `wires/${wire}/${file}`).filter((file) => !(file in SRC)),
  );
  expect(missing).toEqual([]);
  const folders = new Set(Object.keys(SRC).flatMap((file) => /^wires\/([^/]+)\//.exec(file)?.[1] ?? []));
  expect([...folders].filter((wire) => !(wire in WIRES))).toEqual([]);
});

test("docs/contributing/architecture.md has a row for every room", () => {
  const page = readFileSync("docs/contributing/architecture.md", "utf8");
  expect(Object.keys(ROOMS).filter((room) => !page.includes(`| \`${room}\` |`))).toEqual([]);
});

/** Names that say nothing of a thing, or that many things could have, and where one of them may be declared. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  Answer: ["protocol/interrupt.ts", "client/wire.ts"],
  Step: ["protocol/agent-reader.ts"],
  Page: ["agent/core/stores.ts"],
  ...Object.fromEntries(
    [
      ...[
        "Place",
        "Waiting",
        "Asked",
        "Begun",
        "Counted",
        "Found",
        "Given",
        "Held",
        "Kept",
        "Known",
        "Listed",
      ],
      ...["Made", "Opened", "Placed", "Pending", "Read", "Said", "Seen", "Shown", "Taken", "Told", "Written"],
    ].map((name) => [name, []]),
  ),
};
const DECLARED = /^\s*(?:export )?(?:interface|type(?=.*[={])|class|const|function) (\w+)/gm;

function takenNames(sources: Sources): string[] {
  return Object.entries(sources).flatMap(([file, text]) =>
    [...text.matchAll(DECLARED)]
      .map(([, name = ""]) => name)
      .filter((name) => TAKEN[name] !== undefined && !TAKEN[name].includes(file))
      .map((name) => `${file}: \`${name}\``),
  );
}

test("no type has a generic name or one that names nothing", () => {
  expect(takenNames(SRC)).toEqual([]);
  expect(
    takenNames({ "lib/a.ts": "export interface Place {\n}\ntype Placement = 1;\nclass Step {}" }),
  ).toEqual(["lib/a.ts: `Place`", "lib/a.ts: `Step`"]);
});
