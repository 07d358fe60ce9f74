import { describe, expect, test } from "vitest";
import { conversation, type Part, userMessage } from "../../../src/agent/core/message.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import { requestBody } from "../../../src/agent/models/request-body.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS, request } from "./providers.ts";

const fake = fakeProvider();
const image: Part = { type: "image", media_type: "image/png", data: "iVBORw0KGgoA".repeat(50_000) };
const long = conversation()
  .user(`Long. ${'žluťoučký kůň 🤔 "quoted"\n'.repeat(20_000)}`)
  .assistant("Yes.")
  .user([{ type: "text", text: "And this." }, image]).messages;

describe.each(PROTOCOLS)("a long thread, sent to $name", ({ model }) => {
  test("is the same as if it were written at once", async () => {
    const settings = { temperature: 0.5 };
    await ask(model(fake.current), { messages: long, settings });
    const { messages: sent, ...rest } = lastBody(fake.current);
    expect(JSON.stringify(sent)).toContain(image.data);
    expect(JSON.stringify(sent)).toContain(JSON.stringify(long[0]?.content).slice(1, -1));
    await ask(model(fake.current), { messages: [userMessage("Short.")], settings });
    const { messages: _, ...same } = lastBody(fake.current);
    expect(rest).toEqual(same);
  });
});

test("a body in pieces is the JSON of its parameters", async () => {
  const params = { model: "m", stream: true, messages: long };
  const model = createModel({ provider: "openai", model: "m", api_key: "k" }, {});
  const { body, headers } = await requestBody(request(model, { messages: long }), params);
  expect(JSON.parse(new TextDecoder().decode(body as Uint8Array))).toEqual(
    JSON.parse(JSON.stringify(params)),
  );
  expect(headers).toEqual({ "content-type": "application/json" });
});
