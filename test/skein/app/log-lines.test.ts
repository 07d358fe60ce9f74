import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readableLine } from "../../../src/skein/app/log-lines.ts";
import { visible } from "../../../src/skein/cli/paint.ts";
import { skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { atTerminal, testAtTerminal } from "../cli/terminal.ts";

const line = (fields: object) =>
  readableLine(JSON.stringify({ level: 30, time: 0, pid: 1, hostname: "h", ...fields }), (_, text) =>
    visible(text),
  ).replace(/^\d\d:\d\d:\d\d /, "");

test("a log line in a terminal contains the level, the message, the fields, and an error's text", () => {
  expect(line({ msg: "run ended", run_id: "run_1", tools: { ls: 2 }, reason: "two words" })).toBe(
    'info  run ended run_id=run_1 tools={"ls":2} reason="two words"\n',
  );
  const err = { type: "Error", message: "It is full.", stack: "Error: It is full.\n  at write" };
  expect(line({ level: 40, msg: "calls fail", err })).toBe("warn  calls fail\n    It is full.\n");
  expect(line({ level: 50, msg: "run failed", err })).toBe(
    "error run failed\n    Error: It is full.\n      at write\n",
  );
});

test("nothing in the log moves the cursor of a terminal", () => {
  const evil = "a\u001b[2Jb";
  const shown = line({ msg: evil, user: evil, err: { message: evil } });
  expect(shown).not.toContain("\u001b");
  expect(shown.match(/\\u\{1b\}|\\u001b/g)).toHaveLength(3);
});

const inFolder = async () => {
  const dir = await temporaryFolder();
  await writeFile(join(dir, "agents.yaml"), 'agents: { a: { model: "scripted:demo" } }');
  return { PORT: "0", DATA_DIR: join(dir, "data"), AGENTS_FILE: join(dir, "agents.yaml") };
};

testAtTerminal("a server logs text in a terminal, or JSON if LOG_FORMAT says so", async () => {
  const server = atTerminal(["serve"], { env: await inFolder() });
  expect(await server.hear("Server listening")).toMatch(/^\d\d:\d\d:\d\d info {2}Server listening$/m);
  const other = atTerminal(["serve"], { env: { ...(await inFolder()), LOG_FORMAT: "json" } });
  expect(await other.hear("Server listening")).toMatch(/^\{"level":30,.*"msg":"Server listening$/m);
});

test("a server whose output goes to a program logs JSON, or text if LOG_FORMAT says so", async () => {
  const server = skein(["serve"], await inFolder());
  await expect.poll(server.output).toMatch(/^\{"level":30,.*"msg":"Server listening.*"\}$/m);
  const other = skein(["serve"], { ...(await inFolder()), LOG_FORMAT: "text" });
  await expect.poll(other.output).toMatch(/^\d\d:\d\d:\d\d info {2}Server listening/m);
});
