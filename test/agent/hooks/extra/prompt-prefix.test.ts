import { expect, test } from "vitest";
import { hooks } from "../../../../src/agent/hooks/index.ts";
import { conversation, expectPrefixes, WIRES } from "../prompt-prefix.ts";

for (const hook of hooks) await hook.load?.();
const ON = ["notes", "tasks", "context", "loop_detection", "stall_detection", "failure_reflection"];

test.each(Object.entries(WIRES))(
  "requests to %s begin like the previous one, even with the hooks that few agents need",
  async (_, toWire) => expectPrefixes(await conversation(ON), toWire),
);

test("the instructions for notes are among the constant blocks", async () => {
  const [request] = await conversation(ON);
  expect(request?.system.slice(0, 4).map(({ id, cache }) => `${cache} ${id}`)).toEqual([
    ...["static identity", "static notes_protocol", "static instructions", "static behavioral_constraints"],
  ]);
});
