// What a person is asked about a call.

import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/core/tool.ts";
import { filesystem } from "../../../src/hooks/filesystem/index.ts";
import { permissions } from "../../../src/hooks/permissions/index.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { made } from "../made.ts";
import { workspace } from "../workspace.ts";

const book = defineTool({
  ...{ name: "book", description: "", parameters: z.object({ seat: z.string() }) },
  execute: () => "booked",
});

async function asked(tool: string, args: Record<string, unknown>): Promise<string> {
  const backend = await workspace({});
  const files = made(filesystem, { backend, agent: { backend: { type: "local" } } });
  const hooks = [made(permissions, { options: { rules: [{ ask: "*" }] } }), files];
  const { events } = await play({ script: [{ call: [{ tool, args }] }], tools: [book], hooks, backend });
  return dataOf(events, "on_interrupt")[0]?.prompt ?? "";
}

test.each([
  ["execute", { command: "make test" }, "run the command `make test`"],
  ["write_file", { path: "a.txt", content: "hé" }, "write 3 bytes to the file `a.txt`"],
  ["edit_file", { path: "a.txt", old_text: "a", new_text: "b" }, "change the file `a.txt`"],
  ["book", { seat: "12A" }, 'call `book` with {"seat":"12A"}'],
])("a question about %s says what would happen, and why it is asked", async (tool, args, what) => {
  expect(await asked(tool, args)).toBe(`May the agent ${what}? (rule \`ask *\` of agent scope asks for it)`);
});

test("what is left out of a question is said to be", async () => {
  expect(await asked("execute", { command: `echo ${"a".repeat(2000)}; rm -rf .` })).toMatch(
    /^May the agent run the command `echo a+… \(\d+ more characters: see its arguments\)\? \(rule/,
  );
});
