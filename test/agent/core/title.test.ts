import { describe, expect, test } from "vitest";
import { assistantMessage, systemMessage, userMessage } from "../../../src/agent/core/message.ts";
import { titleFrom } from "../../../src/agent/core/title.ts";

const titleOf = (text: string) => titleFrom([userMessage(text)]);

describe("a thread without a title of its own is called", () => {
  test("as its first message, on one line", () => {
    expect(titleOf("  Plan a trip\n\n to\tRome ")).toBe("Plan a trip to Rome");
  });

  test("as the first words of a long one, whole if they are not very long", () => {
    expect(titleOf(`Please ${"compare the offers ".repeat(20)}`)).toBe(
      "Please compare the offers compare the offers compare the…",
    );
    expect(titleOf("x".repeat(2_000))).toBe(`${"x".repeat(59)}…`);
    expect(titleOf("x".repeat(60))).toBe("x".repeat(60));
    expect(titleOf("😀".repeat(40))).toBe(`${"😀".repeat(29)}…`);
  });

  test("without what drives a terminal, turns the text around or cannot be seen", () => {
    expect(titleOf("a\u001b[8mb\u0000c\u202ed\u2066e\u200bf\ufeff\u061cg")).toBe("a [8mb cdef g");
    expect(titleOf("👩\u200d🔬 می\u200cخواهم")).toBe("👩\u200d🔬 می\u200cخواهم");
  });

  test("as the first of the user's messages that has words", () => {
    const picture = { type: "image", media_type: "image/png", data: "aaaa" } as const;
    const messages = [
      systemMessage("Be brief."),
      assistantMessage("Hello"),
      userMessage([picture]),
      userMessage(" \u200b\n"),
      userMessage([picture, { type: "text", text: "What is" }, { type: "text", text: "this?" }]),
      userMessage("And that?"),
    ];
    expect(titleFrom(messages)).toBe("What is this?");
    expect(titleFrom(messages.slice(0, 4))).toBeUndefined();
    expect(titleFrom([])).toBeUndefined();
  });
});
