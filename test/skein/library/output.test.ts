import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { scriptedModel } from "../../../src/agent/models/scripted.ts";
import { createAgent } from "../../../src/index.ts";

const City = z.object({
  name: z.string().refine((name) => name !== "Atlantis", "must exist"),
  founded: z.string().transform(Number),
  tags: z.array(z.string()).default([]),
});

const saying = (...texts: string[]) => scriptedModel(texts.map((say) => ({ say })));

test("a Zod schema types the output, checks it and parses it", async () => {
  const model = saying('{"name":"Atlantis","founded":"1243"}', '{"name":"Brno","founded":"1243"}');
  const agent = createAgent({ model, output_schema: City });
  const result = await agent.run("Which city?").result;
  expectTypeOf(result.output).toEqualTypeOf<z.output<typeof City> | undefined>();
  expect(result.output).toEqual({ name: "Brno", founded: 1243, tags: [] });
  expect(result.messages.find(({ role }, index) => role === "user" && index > 0)?.content).toContain(
    "`name`: must exist.",
  );
});

test("a JSON Schema checks it, and a run can have its own", async () => {
  const schema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
  const agent = createAgent({ model: saying(...Array(4).fill('{"a":1}')), output_schema: schema });
  expect((await agent.run("Go.").result).output).toEqual({ a: 1 });
  const own = { type: "object", required: ["b"] };
  expect((await agent.run("Go.", { output_schema: own }).result).error?.code).toBe("output_invalid");
});

test("a custom loop must follow it too", async () => {
  const agent = createAgent({
    output_schema: z.object({ ok: z.boolean() }),
    async *loop(agent) {
      yield* agent.receive();
      yield* agent.say('{"ok":true}');
    },
  });
  expect((await agent.run("Go.").result).output).toEqual({ ok: true });
});

test("a schema of anything other than an object is refused", () => {
  expect(() => createAgent({ model: saying("x"), output_schema: z.string() })).toThrow(
    /output_schema.*needs `"type": "object"`/,
  );
});
