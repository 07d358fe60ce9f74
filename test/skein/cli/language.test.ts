// The language of the terminal, as the environment names it.

import { expect, test } from "vitest";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { skein } from "../../support/process.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";
import { atTerminal, testAtTerminal } from "./terminal.ts";

const GERMAN = { LANG: "de_DE.UTF-8", TZ: "UTC" };

async function said(args: readonly string[], env: Record<string, string>) {
  const run = skein(args, env);
  const code = await run.exited;
  return { code, text: run.output() };
}

test("is German with LANG=de_DE.UTF-8: help, errors and answers", async () => {
  expect((await said(["--help"], GERMAN)).text).toMatch(/skein keys revoke ID +einen Schlüssel widerrufen/);
  expect((await said(["serve", "--help"], GERMAN)).text).toMatch(
    /^skein serve: die Agenten aus agents\.yaml/,
  );
  expect(await said(["serve", "--prot", "1"], GERMAN)).toMatchObject({
    code: 2,
    text: expect.stringMatching(/^skein: unbekannte Option --prot\n/),
  });
  expect((await said(["keys", "generate"], GERMAN)).text).toContain("Der Schlüssel ist nicht gespeichert.");
});

test.each([
  ["LC_MESSAGES before LANG", { LC_MESSAGES: "de_AT", LANG: "en_US.UTF-8" }, "Einstellungen kommen"],
  ["LC_ALL before all others", { LC_ALL: "C", LC_MESSAGES: "de_AT", LANG: "de_DE.UTF-8" }, "Settings come"],
  ["English for a language that it does not have", { LANG: "fr_FR.UTF-8" }, "Settings come"],
  ["English where no language is named", {}, "Settings come"],
])("accepts %s", async (_, env, words) => {
  expect((await said(["--help"], env)).text).toContain(words);
});

test("decides how numbers, dates and amounts are written", async () => {
  const dir = await temporaryFolder();
  const create = ["keys", "create", "--user", "ada", "--expires", "2031-01-31T10:00:00Z", "--data", dir];
  const store = { STORE: "sqlite" };
  expect((await said(create, { ...GERMAN, ...store })).text).toContain("bis 31. Jan. 2031, 10:00 UTC");
  const english = { LANG: "en_GB.UTF-8", TZ: "UTC" };
  expect((await said(create, { ...english, ...store })).text).toContain("until 31 Jan 2031, 10:00 UTC");
  await createSqliteStores({ dataDir: dir }).close();
  const check = ["store", "check", "--data", dir];
  expect((await said(check, { ...GERMAN, ...store })).text).toBe(
    "Keine Widersprüche gefunden: 0 Unterhaltungen, 0 Läufe, 0 Nachrichten, 0 Ereignisse.\n",
  );
});

const ASKS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    permissions: { rules: [{ ask: execute }] }
`;

testAtTerminal("applies to a chat, whose questions can be answered in German", async () => {
  const execute = (command: string) => ({ tool: "execute", args: { command } });
  const script = [{ call: [execute("echo one")] }, { call: [execute("echo two")] }, { say: "Fertig." }];
  const { url } = await startServer({ script, agents: ASKS });
  const args = ["chat", "--url", url, "--thread", "t1"];
  const { say, hear, ended } = atTerminal(args, { env: GERMAN });
  await hear("Unterhaltung t1 auf");
  await say("> ", "los");
  await say("[j]a", "Ja");
  await say("[j]a", "nein, das reicht");
  await say("Fertig.", "/quit");
  await hear("Fortsetzen: skein chat --thread t1");
  expect(await ended).toEqual([0, null]);
  const { items } = (await (await fetch(`${url}/threads/t1/messages`)).json()) as {
    items: { role: string; content: string; error?: string }[];
  };
  const results = items.flatMap(({ role, content, error }) => (role === "tool" ? [error ?? content] : []));
  expect(results).toEqual(["one\n[exit_code: 0]", "das reicht"]);
});
