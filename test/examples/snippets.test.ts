// Every block of code in docs/ and README.md works: programs pass the compiler, YAML fits its schema, JSON is JSON, and commands
// exist with their options. A comment `<!-- before: … -->` above a block has the
// lines that its page leaves out; a line `…` in it stands for the block.

import { execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ServerConfig } from "../../src/server/config/server.ts";
import { COMMANDS } from "../../src/skein/cli/commands.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

interface Block {
  /** `docs/start/run-skein.md:12` */
  readonly at: string;
  readonly language: string;
  readonly text: string;
  readonly before: string;
}

const BLOCK =
  /(?:<!-- before:\s*(?<before>[\s\S]*?)-->\s*)?^(?<indent> *)```(?<language>\w*)[^\n]*\n(?<text>[\s\S]*?)^\k<indent>```/gm;

const blocks: readonly Block[] = [
  "README.md",
  ...globSync("docs/**/*.md", { cwd: ROOT, exclude: ["docs/reference/api/**"] }),
].flatMap((file) => {
  const page = readFileSync(join(ROOT, file), "utf8");
  return [...page.matchAll(BLOCK)].map(({ index, groups }) => ({
    at: `${file}:${page.slice(0, index).split("\n").length}`,
    language: groups?.language ?? "",
    text: groups?.text ?? "",
    before: groups?.before ?? "",
  }));
});
const of = (...languages: string[]) => blocks.filter(({ language }) => languages.includes(language));

/** A block with its surroundings: those before it, or those around a line `…`. */
const completed = ({ before, text }: Block) => {
  const [head = "", tail = ""] = before.split(/^…$/m);
  return `${head}\n${asInstalled(text)}\n${tail}\nexport {};\n`;
};

test("programs compile", () => {
  mkdirSync(join(ROOT, "node_modules/.cache"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "node_modules/.cache/snippets-"));
  try {
    for (const block of of("ts", "tsx", "js"))
      writeFileSync(join(folder, nameOf(block)), inRepository(block, completed(block)));
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(SETTINGS));
    const { stdout } = spawnSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder, "--singleThreaded"], {
      encoding: "utf8",
    });
    // What others declare is not what a page says.
    expect(stdout.split("\n").filter((line) => line.includes("/snippets-"))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const nameOf = ({ at }: Block) => `${at.replaceAll(/[^\w]/g, "_")}.tsx`;

/** The file of this repository of which a recipe shows a part: `<!-- before: // src/agent/hooks/clock.ts`. */
const fileOf = ({ before }: Block) => /^\/\/ ((?:src|test)\/\S+)$/m.exec(before)?.[1];

/** Imports what that file would import: a file of this repository, or of a recipe. */
function inRepository(block: Block, program: string): string {
  const file = fileOf(block);
  if (file === undefined) return program;
  return program.replaceAll(/(from |import\()"(\.[^"]+)"/g, (_, how, target) => {
    const path = posix.join(posix.dirname(file), target);
    const shown = blocks.find((each) => fileOf(each) === path);
    return `${how}"${shown ? `./${nameOf(shown)}` : posix.join("../../..", path)}"`;
  });
}

/** The examples of this repository import its sources. */
const asInstalled = (text: string) =>
  text.replaceAll(/"(?:\.\.\/)+src\/(?:(skein\/adapters)\/)?index\.ts"/g, (_, adapters) =>
    adapters ? '"skein/adapters"' : '"skein"',
  );

const BUILT = "../../../dist";
const SETTINGS = {
  compilerOptions: {
    ...{
      target: "es2024",
      lib: ["es2024", "esnext.iterator", "esnext.disposable", "dom", "dom.iterable"],
      module: "esnext",
      moduleResolution: "bundler",
    },
    ...{ strict: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true, jsx: "react-jsx" },
    types: ["node"],
    typeRoots: ["../../@types"],
    paths: {
      skein: [`${BUILT}/index.d.ts`],
      "skein/adapters": [`${BUILT}/skein/adapters/index.d.ts`],
      ...Object.fromEntries(
        ["skein/client", "skein-client"].flatMap((name) => [
          [name, [`${BUILT}/client/client.d.ts`]],
          [`${name}/*`, [`${BUILT}/client/*.d.ts`]],
        ]),
      ),
    },
  },
  include: ["*.tsx"],
};

const AGENTS_FILE = JSON.parse(readFileSync(join(ROOT, "config/agents.schema.json"), "utf8"));

/** What settings take from the environment and have a form. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  POSTGRES_URL: "postgres://127.0.0.1/skein",
  SKEIN_WEBHOOK_SECRET: `whsec_${"A".repeat(32)}`,
};

test("YAML matches the schema of its file", () => {
  const isAgentsFile = new Ajv({ strict: false, validateFormats: false }).compile(AGENTS_FILE);
  const keys = new Set(
    AGENTS_FILE.anyOf.flatMap(({ properties }: { properties: object }) => Object.keys(properties)),
  );
  const faults = of("yaml").flatMap(({ at, text }) => {
    const value = parse(text.replaceAll(/\$\{(\w+)\}/g, (all, name) => ENVIRONMENT[name] ?? all));
    const isOfServer = Object.keys(value).every((key) => key in ServerConfig.shape);
    if (Array.isArray(value) || !(isOfServer || Object.keys(value).every((key) => keys.has(key)))) return [];
    // The whole file, the part of one agent, or what stands beside the agents.
    if (
      [value, { agents: { one: value } }, { agents: { one: {} }, ...value }].some((file) =>
        isAgentsFile(file),
      )
    )
      return [];
    const { error } = ServerConfig.safeParse(value);
    return error ? [`${at}: ${isOfServer ? error.message : JSON.stringify(isAgentsFile.errors)}`] : [];
  });
  expect(faults).toEqual([]);
});

test("JSON is valid", () => {
  for (const { text, at } of of("json")) expect(() => JSON.parse(text), at).not.toThrow();
});

test("shell commands are well-formed, and those of skein exist with their options", () => {
  const scripts = of("sh", "bash");
  for (const { text, at } of scripts)
    expect(() => execFileSync("bash", ["-n"], { input: text, stdio: "pipe" }), at).not.toThrow();
  const options = new Map(COMMANDS.map(({ name, options }) => [name, Object.keys(options)]));
  const faults = scripts.flatMap(({ text, at }) =>
    [
      ...text
        .replaceAll("\\\n", " ")
        .matchAll(
          /\bskein ([a-z]+(?: (?:check|diff|generate|create|list|revoke|export|import))?)((?: [^\n|;&)]*)?)/g,
        ),
    ].flatMap(([line, name = "", rest = ""]) => {
      const known = options.get(name) ?? options.get(name.split(" ")[0] ?? "");
      if (!known)
        return /^(?:serve|chat|init|acp|config|keys|backup|store|restore|threads)\b/.test(name)
          ? [`${at}: ${line}`]
          : [];
      return [...rest.matchAll(/ --([a-z-]+)/g)]
        .filter(([, option = ""]) => !known.includes(option))
        .map(([option]) => `${at}: skein ${name}${option}`);
    }),
  );
  expect(faults).toEqual([]);
});
