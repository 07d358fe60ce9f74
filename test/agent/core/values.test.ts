import { expect, test } from "vitest";
import { createValues, valueKey } from "../../../src/agent/core/tool.ts";
import { plainTool, play } from "../../support/agent.ts";

test("a value can be found only under its key, until it is deleted", () => {
  const values = createValues();
  const key = valueKey<number>("count");
  values.set(key, 1);
  expect(values.get(key)).toBe(1);
  expect(values.get(valueKey<number>("count"))).toBeUndefined();
  expect([values.delete(key), values.delete(key), values.has(key)]).toEqual([true, false, false]);
});

test("a tool can read the values that a hook set in the same run, and in no other", async () => {
  const key = valueKey<string>("secret");
  const found: unknown[] = [];
  const peek = plainTool("peek", (_args, _call, run) => {
    found.push(run.values.get(key));
    return "ok";
  });
  const script = [{ call: [{ tool: "peek" }] }, { say: "ok" }];
  const hook = {
    name: "leaving",
    beforeAgent: (run: { values: ReturnType<typeof createValues> }) => run.values.set(key, "x"),
  };
  await play({ hooks: [hook], tools: [peek], script });
  await play({ tools: [peek], script });
  expect(found).toEqual(["x", undefined]);
});
