import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { play } from "../../support/agent.ts";
import { call, say } from "../../support/fake-provider/script.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();
const tools = [
  { name: "read", description: "Reads a file.", parameters: { type: "object", properties: {} } },
  { name: "write", description: "Writes a file.", parameters: { type: "object", properties: {} } },
];
const WIRE = {
  anthropic: {
    ...{ auto: { type: "auto" }, none: { type: "none" }, required: { type: "any" } },
    named: { type: "tool", name: "write" },
  },
  openai: {
    ...{ auto: "auto", none: "none", required: "required" },
    named: { type: "function", function: { name: "write" } },
  },
};

describe.each(PROTOCOLS)("$name", ({ family, model }) => {
  const chosen = () => lastBody(fake.current).tool_choice;

  test.each([
    ["auto", "auto"],
    ["none", "none"],
    ["required", "required"],
    ["named", { name: "write" }],
  ] as const)(
    "uses the choice %s from the model's settings and from the request's",
    async (word, tool_choice) => {
      await ask(model(fake.current, { tool_choice }), { tools });
      expect(chosen()).toEqual(WIRE[family][word]);
      await ask(model(fake.current, { tool_choice: "auto" }), { tools, settings: { tool_choice } });
      expect(chosen()).toEqual(WIRE[family][word]);
    },
  );

  test("sends no choice if none is set, or without tools", async () => {
    await ask(model(fake.current), { tools });
    expect(chosen()).toBeUndefined();
    await ask(model(fake.current, { tool_choice: "required" }));
    expect(chosen()).toBeUndefined();
  });

  test("is forced to call a tool only once, so it can finish", async () => {
    fake.current.enqueue({ blocks: [call("read", {}, "call_1")] }, { blocks: [say("Done.")] });
    const read = defineTool({
      ...{ name: "read", description: "", parameters: z.object({}), execute: () => "text" },
    });
    const { outcome } = await play({
      model: model(fake.current, { tool_choice: "required" }),
      tools: [read],
    });
    expect(outcome).toMatchObject({ status: "success" });
    expect(chosen()).toEqual(WIRE[family].auto);
  });

  test("refuses a choice of a tool that is not offered, and lists the tools", async () => {
    const asking = ask(model(fake.current, { tool_choice: { name: "delete" } }), { tools });
    await expect(asking).rejects.toMatchObject({
      code: "model_rejected",
      message: "tool_choice: there is no tool `delete`. Use one of: read, write.",
    });
  });

  test("does not think during a forced call if thinking does not allow it", async () => {
    await ask(model(fake.current, { tool_choice: "required", thinking: 2048 }), { tools });
    expect(chosen()).toEqual(WIRE[family].required);
  });
});

test("a Claude model that always thinks keeps the choice", async () => {
  const [anthropic] = PROTOCOLS;
  const model = anthropic?.model(fake.current, { model: "claude-fable-5-2", tool_choice: "required" });
  if (!model) throw new Error("There is no such provider.");
  await ask(model, { tools });
  expect(lastBody(fake.current)).toMatchObject({
    tool_choice: { type: "auto" },
    thinking: { type: "adaptive" },
  });
});
