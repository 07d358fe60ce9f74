import { describe, expect, test } from "vitest";
import { guarded } from "./guarded.ts";

describe("rules", () => {
  const isRefused = async (input: Record<string, unknown>, say: string) =>
    (await guarded({ input }, { say })).outcome.stop_reason === "refusal";

  test("allow: one must occur", async () => {
    const input = { allow: ["(?i)weather", "(?i)forecast"] };
    expect(await isRefused(input, "the Forecast, please")).toBe(false);
    expect(await isRefused(input, "a poem, please")).toBe(true);
  });

  test("deny goes before allow", async () => {
    expect(await isRefused({ allow: ["weather"], deny: ["bomb"] }, "weather bomb")).toBe(true);
  });

  test("max_chars: longer is refused", async () => {
    expect(await isRefused({ max_chars: 5 }, "12345")).toBe(false);
    expect(await isRefused({ max_chars: 5 }, "123456")).toBe(true);
  });

  test.each([
    ["bomb", "a BOMB!", true],
    ["bomb", "bombastic", false],
    ["bomb", "bo\u200bmb", true],
    ["bomb", "ｂｏｍｂ", true],
    ["tax advice", "Tax,  advice?", true],
    ["tax advice", "advice on tax", false],
    ["straße", "Straße", true],
    ["爆弾", "この爆弾は", true],
    ["C3PO", "c3po", true],
  ])("topics: `%s` in `%s` is found: %s", async (topic, say, found) => {
    expect(await isRefused({ topics: [topic] }, say)).toBe(found);
  });

  test("a text too long for an expression is refused: padding does not carry it past", async () => {
    const padding = "x".repeat(2_000_000);
    expect(await isRefused({ deny: ["(?i)bomb"] }, `${padding} bomb`)).toBe(true);
    expect(await isRefused({ allow: ["(?i)weather"] }, `${padding} bomb`)).toBe(true);
    expect(await isRefused({ topics: ["bomb"] }, `${padding} bomb`)).toBe(true);
  });
});
