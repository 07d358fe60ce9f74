import { expect, test } from "vitest";
import { z } from "zod";
import { hooks } from "../../../src/agent/hooks/index.ts";

/** Switched on without a word, they would do nothing. */
const MUST_BE_TOLD: ReadonlySet<string> = new Set(["guardrails", "context"]);

test.each(hooks.map((hook) => [hook.name, hook] as const))(
  "%s works without options unless it needs one, and refuses unknown ones",
  (_, hook) => {
    expect(hook.options.safeParse({}).success).toBe(!MUST_BE_TOLD.has(hook.name));
    expect(hook.options.safeParse({ no_such_option: 1 }).success).toBe(false);
    expect(z.toJSONSchema(hook.options, { io: "input" })).toMatchObject({
      type: "object",
      additionalProperties: false,
    });
  },
);

test("every option has a description", () => {
  for (const { name, options } of hooks) {
    const { properties = {} } = z.toJSONSchema(options, { io: "input" });
    for (const [option, schema] of Object.entries(properties))
      expect(schema, `${name}.${option}`).toHaveProperty("description");
  }
});
