import { expect, test } from "vitest";
import { shoppingList } from "../../examples/typed-output/main.ts";
import { scriptedModel } from "../../src/agent/models/scripted.ts";

test("returns a list to the program, not text", async () => {
  const answers = ['{"items":[]}', '{"items":[{"name":"eggs","amount":2}]}'];
  const model = scriptedModel(answers.map((say) => ({ say })));
  expect(await shoppingList("Two eggs", model)).toEqual([{ name: "eggs", amount: 2 }]);
});

test("throws if the model returns none", async () => {
  const model = scriptedModel(["a", "b", "c"].map((say) => ({ say })));
  await expect(shoppingList("Two eggs", model)).rejects.toThrow("output_schema");
});
