import { expect, test } from "vitest";
import { conversation, expectPrefixes, WIRES } from "./prompt-prefix.ts";

const ON = ["context", "loop_detection"];

test.each(Object.entries(WIRES))(
  "requests to %s begin like the previous one, from turn to turn and from run to run",
  async (_, toWire) => expectPrefixes(await conversation(ON), toWire),
);

test("an agent's prompt contains the texts of all its hooks, with the most constant ones first", async () => {
  const [request] = await conversation(ON);
  expect(request?.system.map(({ id, cache }) => `${cache} ${id}`)).toEqual([
    ...["static identity", "static instructions", "static behavioral_constraints"],
    ...["static project_context", "semi skills", "semi available_skills", "semi memory"],
    "dynamic available_agents",
  ]);
});
