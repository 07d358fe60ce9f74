// What `skein config diff` says of two agents files.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { changesBetween } from "../../../src/agent/agents/changes.ts";
import { skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

const BEFORE = `
defaults: { model: "scripted:demo" }
agents:
  coder: { system_prompt: { file: coder.md }, tools: [write_todos], max_iterations: 5 }
  writer: { description: Writes. }
mcp_servers:
  files: { url: "\${FILES_URL}", headers: { authorization: "Bearer \${FILES_TOKEN}" } }
`;
const AFTER = `
defaults: { model: "scripted:demo", max_iterations: 9 }
agents:
  coder: { system_prompt: { file: coder2.md }, tools: [write_todos, ask_user], hooks: { timeout: { tool: 10m } } }
  reader: { description: Reads. }
mcp_servers:
  files: { url: "\${OTHER_URL}", headers: { authorization: "Bearer \${OTHER_TOKEN}" } }
`;
const ENV = {
  FILES_URL: "https://files.internal/mcp",
  OTHER_URL: "https://other.internal/mcp",
  FILES_TOKEN: "first-secret-value",
  OTHER_TOKEN: "second-secret-value",
};

async function folder(files: Record<string, string>) {
  const dir = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  return dir;
}

async function diff(files: Record<string, string>, env: Record<string, string> = ENV) {
  const run = skein(["config", "diff", "new.yaml", "--agents", "old.yaml"], env, await folder(files));
  return { code: await run.exited, text: run.output() };
}

describe("skein config diff", () => {
  test("shows added, removed and changed entries, and no value of a variable", async () => {
    const prompts = { "coder.md": "You write code.", "coder2.md": "You write good code." };
    const { code, text } = await diff({ "old.yaml": BEFORE, "new.yaml": AFTER, ...prompts });
    expect(text).toBe(`~ agent coder
    tools: + ask_user
    max_iterations: 5 → 9
    prompt: You write code. → You write good code.
    hooks: (default) → {"timeout":{"tool":"10m"}}
+ agent reader
- agent writer
~ MCP server files
    url: \${FILES_URL} → \${OTHER_URL}
    headers.authorization: changed
`);
    expect(code).toBe(0);
  });

  test("reports that nothing changes, even if the files are written differently", async () => {
    const other = `
# The same agents.
agents:
  writer: { description: Writes., model: "scripted:demo" }
  coder: { model: "scripted:demo" }
`;
    const same = `
defaults: { model: "scripted:demo" }
agents: { writer: { description: Writes. }, coder: {} }
`;
    expect(await diff({ "old.yaml": same, "new.yaml": other })).toEqual({ code: 0, text: "no changes\n" });
  });

  test("refuses a file that the server would refuse, with every problem", async () => {
    const { code, text } = await diff({
      "old.yaml": "agents: { a: {} }",
      "new.yaml": "agents: { a: { modle: x, tols: [] } }",
    });
    expect(code).toBe(1);
    expect(text).toMatch(
      /new\.yaml:1:16: .*`modle`; did you mean `model`\?[\s\S]*`tols`; did you mean `tools`\?/,
    );
  });
});

test("an agent's name can be any name of an object member", () => {
  const agents = (names: string[]) => ({
    agents: Object.fromEntries(names.map((name) => [name, {}])),
    ...{ models: {}, mcp_servers: {} },
  });
  expect(changesBetween(agents(["a"]), agents(["a", "toString", "constructor"]))).toMatchObject([
    { kind: "added", what: "agent toString" },
    { kind: "added", what: "agent constructor" },
  ]);
});
