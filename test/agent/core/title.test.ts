import { describe, expect, test } from "vitest";
import { assistantMessage, systemMessage, userMessage } from "../../../src/agent/core/message.ts";
import { titleFrom } from "../../../src/agent/core/title.ts";

const titleOf = (text: string) => titleFrom([userMessage(text)]);

describe("the title of a thread without its own is", () => {
  test("its first message, on one line", () => {
    expect(titleOf("  Plan a trip\n\n to\tRome ")).toBe("Plan a trip to Rome");
  });

  test("the first words of a long message, or all of a fairly long one", () => {
    expect(titleOf(`Please ${"compare the offers ".repeat(20)}`)).toBe(
      "Please compare the offers compare the offers compare the…",
    );
    expect(titleOf("x".repeat(2_000))).toBe(`${"x".repeat(59)}…`);
    expect(titleOf("x".repeat(60))).toBe("x".repeat(60));
    expect(titleOf("😀".repeat(40))).toBe(`${"😀".repeat(29)}…`);
  });

  test("free of characters that control a terminal, change the text direction or are invisible", () => {
    expect(titleOf("a\u001b[8mb\u0000c\u202ed\u2066e\u200bf\ufeff\u061cg")).toBe("a [8mb cdef g");
    expect(titleOf("👩\u200d🔬 می\u200cخواهم")).toBe("👩\u200d🔬 می\u200cخواهم");
  });

  test("the first of the user's messages that contains text", () => {
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
