// Structured output, as each provider is asked for it.

import { describe, expect, test } from "vitest";
import { enforceable, isComplete } from "../../../src/agent/models/output.ts";
import type { JsonSchema } from "../../../src/lib/untrusted-schema/index.ts";
import { textSeen } from "../../support/drain.ts";
import { call, rawCall, say } from "../../support/fake-provider/script.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

const output: JsonSchema = {
  type: "object",
  properties: { city: { type: "string", minLength: 2 }, people: { type: "integer", description: "Now" } },
  required: ["city"],
};
const open: JsonSchema = { type: "object", additionalProperties: { type: "number" } };
const tools = [{ name: "look_up", description: "Looks up.", parameters: { type: "object", properties: {} } }];
const answer = '{"city":"Brno","people":400000}';

const sentFormat = () => {
  const { output_config, response_format } = lastBody(fake.current);
  return output_config?.format?.schema ?? response_format?.json_schema.schema;
};
const sentTools = () => (lastBody(fake.current).tools ?? []).map((tool) => tool.name ?? tool.function?.name);

describe.each(PROTOCOLS)("$name", ({ model }) => {
  test("makes the provider enforce the schema, or offers a tool for the answer", async () => {
    const isTool = async () => {
      await ask(model(fake.current), { output, tools });
      return sentTools().includes("final_answer");
    };
    expect(await isTool()).toBe(sentFormat() === undefined);
    expect(fake.current.requests().at(-1)?.status).toBe(200);
  });

  test("streams and returns the answer as text, wherever the model wrote it", async () => {
    await ask(model(fake.current), { output, tools });
    const isTool = sentTools().includes("final_answer");
    const block = isTool ? rawCall("final_answer", answer) : say(answer);
    fake.current.enqueue({ blocks: [block] });
    const { events, reply } = await ask(model(fake.current), { output, tools });
    expect(textSeen(events)).toBe(answer);
    expect(events.some(({ data }) => "tool_call" in data)).toBe(false);
    expect(reply).toMatchObject({ tool_calls: [], stop_reason: "end_turn" });
    expect(JSON.parse(reply.content)).toEqual(JSON.parse(answer));
  });

  test("lets the model call its tools first", async () => {
    fake.current.enqueue({ blocks: [call("look_up", {}, "call_1")] });
    const { reply } = await ask(model(fake.current), { output, tools });
    expect(reply.tool_calls).toEqual([{ id: "call_1", name: "look_up", args: {} }]);
  });

  test("uses a tool for schemas that no provider can enforce", async () => {
    fake.current.enqueue({ blocks: [rawCall("final_answer", '{"a":1}')] });
    const { reply } = await ask(model(fake.current), { output: open, tools });
    expect(sentTools()).toContain("final_answer");
    expect(reply).toMatchObject({ content: '{"a":1}', tool_calls: [], stop_reason: "end_turn" });
  });

  test("does not accept an answer that was cut off", async () => {
    fake.current.enqueue({ blocks: [rawCall("final_answer", '{"a":')], stop: "max_tokens" });
    const { reply } = await ask(model(fake.current), { output: open, tools });
    expect(reply).toMatchObject({ content: '{"a":', stop_reason: "max_tokens" });
  });

  test("does not accept an answer next to calls, because the model has not seen their results", async () => {
    fake.current.enqueue({ blocks: [call("look_up", {}, "call_1"), rawCall("final_answer", '{"a":1}')] });
    const { reply } = await ask(model(fake.current), { output: open, tools });
    expect(reply.tool_calls.map(({ name }) => name)).toEqual(["look_up"]);
    expect(reply.content).toBe("");
  });

  test("can leave the model no tool except the one for the answer", async () => {
    await ask(model(fake.current, { tool_choice: "none" }), { output: open, tools });
    expect(sentTools()).toEqual(["final_answer"]);
  });

  test("does not ask for it without a schema", async () => {
    await ask(model(fake.current), { tools });
    expect(sentFormat()).toBeUndefined();
    expect(sentTools()).toEqual(["look_up"]);
  });
});

describe("a schema to be enforced", () => {
  test("has closed objects, and describes in words what providers do not support", () => {
    expect(enforceable(output)).toEqual({
      ...{ type: "object", required: ["city"], additionalProperties: false },
      properties: {
        city: { type: "string", description: "minLength: 2" },
        people: { type: "integer", description: "Now" },
      },
    });
  });

  test.each<JsonSchema>([
    open,
    { type: "object" },
    { type: "object", properties: { a: {} } },
    { type: "object", properties: { a: { $ref: "#" } } },
    { type: "object", properties: { a: { oneOf: [{ type: "string" }] } } },
    { type: "object", properties: { a: { type: "object", properties: {}, additionalProperties: true } } },
  ])("is not used for %j, which means more", (schema) => {
    expect(enforceable(schema)).toBeUndefined();
  });

  test("is strict for OpenAI only if nothing is optional", () => {
    expect(isComplete(output)).toBe(false);
    expect(isComplete({ ...output, required: ["city", "people"] })).toBe(true);
    const nested = { type: "object", properties: { a: { type: "array", items: output } }, required: ["a"] };
    expect(isComplete(nested)).toBe(false);
  });
});
