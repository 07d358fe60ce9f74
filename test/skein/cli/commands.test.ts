// The command line: what it takes, and what it answers to what it does not.

import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { readCall } from "../../../src/skein/cli/command.ts";
import { COMMANDS, head } from "../../../src/skein/cli/commands.ts";
import { en } from "../../../src/skein/cli/texts/en.ts";
import { serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

const read = (...args: string[]) => readCall(args, COMMANDS, head(en));

describe("help", () => {
  test.each([[[]], [["--help"]], [["-h"]]])("of skein %j names every command", (args) => {
    const text = String(read(...args));
    for (const { name } of COMMANDS) expect(text).toContain(`skein ${name}`);
  });

  test.each(COMMANDS.map(({ name }) => [name]))("of `%s` lists its options", (name) => {
    const text = String(read(...name.split(" "), "--help"));
    const options = Object.keys(COMMANDS.find((each) => each.name === name)?.options ?? {});
    expect(text).toContain(`skein ${name}`);
    for (const option of options) expect(text).toContain(`--${option}`);
  });

  test("of a group names its commands, and no other", () => {
    const text = String(read("keys", "--help"));
    expect(text).toMatch(/keys create[\s\S]*keys list[\s\S]*keys revoke ID/);
    expect(text).not.toContain("serve");
  });

  test("and docs/reference/cli.md name the same commands and options", async () => {
    const page = await readFile("docs/reference/cli.md", "utf8");
    const sections = page.split(/^## /m).slice(1);
    const told = sections.flatMap((section) => {
      const [, name] = /^`skein ([a-z -]+?)(?: [[A-Z\]]+)?`/.exec(section) ?? [];
      return name ? [[name, [...section.matchAll(/^\| `--(\w+)/gm)].map(([, option]) => option)]] : [];
    });
    const there = COMMANDS.map(({ name, options }) => [name, Object.keys(options)]);
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(there));
  });
});

describe("skein store check", () => {
  const check = async (dir: string, ...options: string[]) => {
    const run = skein(["store", "check", "--data", dir, ...options], { STORE: "sqlite" });
    return { code: await run.exited, lines: run.output().trim().split("\n") };
  };
  const damaged = async () => {
    const dir = await temporaryFolder();
    const stores = createSqliteStores({ dataDir: dir });
    await stores.threads.create({ tenant: "acme", user: "ada" }, { id: "t1", metadata: {} });
    await stores.close();
    const file = new DatabaseSync(join(dir, "skein.db"));
    file.exec("UPDATE threads SET message_count = 3");
    file.close();
    return dir;
  };

  test("prints contradictions with their location, and exits with 1", async () => {
    const { code, lines } = await check(await damaged());
    expect(lines).toEqual([
      "thread t1 of acme/ada: The thread counts 3 messages, but has 0. [wrong_count]",
      "1 contradiction: 1 thread, 0 runs, 0 messages, 0 events.",
    ]);
    expect(code).toBe(1);
  });

  test("prints JSON, one finding per line, and the number of items last", async () => {
    const { lines } = await check(await damaged(), "--json");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      {
        rule: "wrong_count",
        text: "The thread counts 3 messages, but has 0.",
        owner: { tenant: "acme", user: "ada" },
        thread: "t1",
      },
      { findings: 1, threads: 1, runs: 0, messages: 0, events: 0 },
    ]);
  });

  test("exits with 0 for a correct store, and with 2 for one that it cannot read", async () => {
    const dir = await temporaryFolder();
    expect(await check(dir)).toEqual({
      code: 2,
      lines: [`skein: There is no database \`${join(dir, "skein.db")}\`.`],
    });
    expect(existsSync(join(dir, "skein.db"))).toBe(false);
    await createSqliteStores({ dataDir: dir }).close();
    expect(await check(dir)).toMatchObject({
      code: 0,
      lines: [expect.stringMatching(/^No contradictions found: 0 threads/)],
    });
    await writeFile(join(dir, "skein.db"), "no database at all, but a text");
    expect(await check(dir)).toMatchObject({ code: 2 });
  });
});

describe("an error is printed with the usage of the intended command", () => {
  test.each([
    [["srve"], /unknown command `srve`[\s\S]*skein serve/],
    [["--url", "x"], /unknown command `--url`/],
    [["keys"], /`skein keys` needs one of these commands[\s\S]*keys create/],
    [["keys", "delete"], /`skein keys` needs one of these commands/],
    [["keys", "create"], /missing required option --user[\s\S]*skein keys create/],
    [["keys", "revoke"], /missing argument ID[\s\S]*skein keys revoke ID/],
    [["serve", "--prot", "1"], /'--prot'[\s\S]*skein serve[\s\S]*--port NUMBER/],
    [["serve", "now"], /unexpected argument `now`/],
    [["serve", "--port"], /--port/],
    [["chat", "tell", "me"], /unexpected argument `me`: put the message in quotes/],
  ])("%j", (args, words) => {
    expect(() => read(...args)).toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(words) }),
    );
  });

  test("with exit code 2, and nothing is created", async () => {
    const dir = await temporaryFolder();
    const run = skein(["keys", "create", "--data", join(dir, "data")], {});
    expect(await run.exited).toBe(2);
    expect(run.output()).toContain("missing required option --user");
    expect(existsSync(join(dir, "data"))).toBe(false);
  });
});

const AGENTS = `agents: { helper: { model: "scripted:script.yaml" } }`;

async function folder() {
  const dir = await temporaryFolder();
  await writeFile(join(dir, "mine.yaml"), AGENTS);
  await writeFile(join(dir, "script.yaml"), "- { say: ok }");
  return dir;
}

const agentsOf = async (url: string) =>
  ((await (await fetch(`${url}/agents`)).json()) as { items: { name: string }[] }).items.map(
    ({ name }) => name,
  );

describe("skein serve", () => {
  test("accepts the port, the agents and the data folder as options, which override variables", async () => {
    const dir = await folder();
    const args = ["--port", "0", "--agents", "mine.yaml", "--data", "kept"];
    const { url } = await serving(skein(["serve", ...args], { PORT: "1", AGENTS_FILE: "nowhere.yaml" }, dir));
    expect(await agentsOf(url)).toEqual(["helper"]);
    expect(existsSync(join(dir, "kept"))).toBe(true);
  });

  test("reads .env in its folder; environment variables take precedence", async () => {
    const dir = await folder();
    await writeFile(join(dir, ".env"), "AGENTS_FILE=mine.yaml\nPORT=1\n");
    const { url } = await serving(skein(["serve"], { PORT: "0" }, dir));
    expect(await agentsOf(url)).toEqual(["helper"]);
  });

  test.each([
    ["a byte order mark", Buffer.from("\ufeffAGENTS_FILE=mine.yaml\r\n")],
    ["UTF-16", Buffer.from("\ufeffAGENTS_FILE=mine.yaml\r\n", "utf16le")],
  ])("reads a .env with %s, as Windows editors write it", async (_, bytes) => {
    const dir = await folder();
    await writeFile(join(dir, ".env"), bytes);
    const { url } = await serving(skein(["serve"], { PORT: "0" }, dir));
    expect(await agentsOf(url)).toEqual(["helper"]);
  });
});
