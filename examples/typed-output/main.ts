// An answer as a typed value. The schema describes the answer to the model, validates it, and gives it a type.
//
// Run it:   OPENAI_API_KEY=… npx node examples/typed-output/main.ts "Two eggs, a cup of milk, flour"
// Test it:  npm test -- test/examples/typed-output.test.ts

import { z } from "zod";
import { createAgent, type Model } from "../../src/index.ts";

const ShoppingList = z.object({
  items: z
    .array(z.object({ name: z.string(), amount: z.number().positive(), unit: z.string().optional() }))
    .min(1),
});

/** Returns the shopping list in a text. Throws if the model returns no valid list within three attempts. */
export async function shoppingList(text: string, model?: Model) {
  const agent = createAgent({
    system_prompt: "You turn what people say into a shopping list.",
    output_schema: ShoppingList,
    ...(model ? { model } : {}),
  });
  try {
    const { output, error } = await agent.run(text).result;
    if (!output) throw new Error(error?.message);
    return output.items;
  } finally {
    await agent.close();
  }
}

if (import.meta.main) console.table(await shoppingList(process.argv[2] ?? "Two eggs and flour"));
