import { expect, test } from "vitest";
import { PROVIDERS as ADDRESSES, isGateway } from "../../../src/agent/models/providers.ts";
import { ask, fakeProvider, PROVIDERS } from "./providers.ts";

const fake = fakeProvider();
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("no provider is treated as your own gateway, however its address is given", () => {
  const { ollama: _, ...others } = ADDRESSES;
  const usual = Object.values(others).map(({ baseUrl }) =>
    typeof baseUrl === "string" ? baseUrl : baseUrl({ AWS_REGION: "eu-west-1" }),
  );
  const given = [
    "https://eu.api.openai.com/v1",
    "https://API.anthropic.com",
    "https://team.openai.azure.com",
  ];
  expect([...usual, ...given].filter(isGateway)).toEqual([]);
  const own = ["https://llm.example.com/v1", "http://127.0.0.1:4000", "http://litellm:4000"];
  expect(own.filter(isGateway)).toEqual(own);
});

test.each(PROVIDERS)(
  "a gateway with the protocol of $name gets a call's trace context unless that is turned off",
  async ({ model }) => {
    const sentWith = async (options: { traceparent?: boolean }) => {
      await ask(model(fake.current, options), { traceparent });
      return fake.current.requests().at(-1)?.headers.traceparent;
    };
    expect(await sentWith({})).toBe(traceparent);
    expect(await sentWith({ traceparent: true })).toBe(traceparent);
    expect(await sentWith({ traceparent: false })).toBeUndefined();
  },
);
