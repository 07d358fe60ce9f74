import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Of the system: passed on to commands and to MCP servers, not settings of Skein. */
const SYSTEM = ["HOME", "LANG", "PATH"];

/** `env.NAME`, a provider's `keyEnv: "NAME"` (of several, the first), and the names of src/config/environment.ts. */
const READ = /\benv\.([A-Z][A-Z0-9_]+)|\b(?:keyEnv|baseUrlEnv): \[?"([A-Z0-9_]+)"/g;
const SETTING = /^ {2}([A-Z][A-Z0-9_]+): /gm;

const namesIn = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, ...groups]) => groups.find((name) => name !== undefined) ?? "");

test(".env.example lists every variable that the server reads, and no other", () => {
  const sources = globSync("src/**/*.ts").map((file) => readFileSync(file, "utf8"));
  const read = new Set([
    ...sources.flatMap((text) => namesIn(text, READ)),
    ...namesIn(readFileSync("src/config/environment.ts", "utf8"), SETTING),
  ]);
  const listed = namesIn(readFileSync(".env.example", "utf8"), /^# ([A-Z0-9_]+)=/gm);
  expect(listed.toSorted()).toEqual([...read].filter((name) => !SYSTEM.includes(name)).toSorted());
});
