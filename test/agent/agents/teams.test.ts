// Whom agents may give tasks to, as the file says it.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadAgents } from "../../../src/agent/agents/load.ts";
import { catalogueOf } from "../../../src/skein/app/catalogue.ts";
import { temporaryFolder } from "../../support/server.ts";

async function loaded(text: string) {
  const file = join(await temporaryFolder(), "agents.yaml");
  await writeFile(file, text);
  return loadAgents({ file, env: {}, catalogue: catalogueOf({ env: {} }) });
}

test("an agent can name other agents and their backend, or all of them at once", async () => {
  const { definitions } = await loaded(`
defaults: { model: "scripted:demo", subagents: [lead, coder] }
agents:
  lead: {}
  coder: { subagents: [{ agent: lead, backend: own }] }
`);
  expect(definitions.map(({ subagents }) => subagents)).toEqual([
    ["lead", "coder"],
    [{ agent: "lead", backend: "own" }],
  ]);
});

test("an unknown name, and the agent itself, are refused with their location", async () => {
  const file = loaded(`
agents:
  lead:
    model: "scripted:demo"
    subagents:
      - codr
      - lead
      - { agent: nemo }
  coder: { model: "scripted:demo" }
`);
  await expect(file).rejects.toThrow(
    /:6:9: agents\.lead\.subagents\[0\]: there is no agent `codr`; did you mean `coder`/,
  );
  await expect(file).rejects.toThrow(/:7:9: agents\.lead\.subagents\[1\]: is the agent itself/);
  await expect(file).rejects.toThrow(/:8:18: agents\.lead\.subagents\[2\]\.agent: there is no agent `nemo`/);
});
