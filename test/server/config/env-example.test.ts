import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PROVIDERS } from "../../../src/agent/models/providers.ts";
import { Settings } from "../../../src/server/config/environment.ts";

/** Of the system, passed on to commands and to MCP servers, and of Node: not settings of Skein. */
const SYSTEM = ["HOME", "LANG", "PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = ""]) => name);

test(".env.example lists exactly the variables that the server reads or that the pages on models name", () => {
  const sources = globSync("src/**/*.ts").map((file) => readFileSync(file, "utf8"));
  const read = new Set([
    ...Object.keys(Settings.shape),
    ...sources.flatMap((text) => namesIn(text, /\benv\.([A-Z][A-Z0-9_]+)/g)),
    ...Object.values(PROVIDERS).flatMap(({ keyEnv = [], baseUrlEnv = [], credentialsEnv = [] }) =>
      [keyEnv, baseUrlEnv, credentialsEnv].flat(),
    ),
    // What the SDKs of providers read by themselves.
    ...["docs/reference/models.md", "docs/guides/providers.md"].flatMap((page) =>
      namesIn(readFileSync(page, "utf8"), /`([A-Z][A-Z0-9]*_[A-Z0-9_]+)/g),
    ),
  ]);
  const listed = namesIn(readFileSync(".env.example", "utf8"), /^# ([A-Z0-9_]+)=/gm);
  expect(listed.toSorted()).toEqual([...read].filter((name) => !SYSTEM.includes(name)).toSorted());
});
