import { describe, expect, test } from "vitest";
import {
  assistantMessages,
  byRole,
  conversation,
  estimateTokens,
  isRole,
  isUserInputRole,
  lastContent,
  type Message,
  prettyPrint,
  systemMessage,
  systemMessages,
  toolMessage,
  toolMessages,
  unanswered,
  userMessage,
  userMessages,
  validate,
  validateUserInput,
} from "../../../src/agent/core/message.ts";

const talk = conversation()
  .system("You are helpful.")
  .user("What is 2+2?")
  .assistant("", { id: "call_1", name: "calculate", args: { expr: "2+2" } })
  .tool("call_1", "calculate", "4")
  .assistant("2+2 = 4").messages;

describe("a conversation", () => {
  test("is filtered by role", () => {
    expect(systemMessages(talk)).toHaveLength(1);
    expect(assistantMessages(talk)).toHaveLength(2);
    expect(toolMessages(talk)[0]?.tool_call_id).toBe("call_1");
    expect(byRole(talk, "user")).toEqual(userMessages(talk));
    expect(lastContent(talk)).toBe("2+2 = 4");
    expect(lastContent([])).toBe("");
  });

  test("is printed in a readable form", () => {
    expect(prettyPrint(talk)).toBe(`[System]
You are helpful.

[Human]
What is 2+2?

[AI]
  → tool_call: calculate(id=call_1, args={"expr":"2+2"})

[Tool: calculate (call_id=call_1)]
4

[AI]
2+2 = 4`);
  });

  test("is estimated at a quarter of its characters, including arguments", () => {
    expect(estimateTokens([userMessage("x".repeat(400))])).toBe(100);
    expect(estimateTokens([])).toBe(0);
    const call = { id: "c", name: "abcd", args: { text: "x".repeat(386) } };
    expect(estimateTokens(conversation().assistant("", call).messages)).toBe(Math.ceil((4 + 397) / 4));
  });
});

describe("the errors in a conversation", () => {
  test("are none if it is well formed", () => {
    expect(validate(talk)).toEqual([]);
  });

  test.each<[string, unknown, RegExp]>([
    ["an unknown role", { ...userMessage("x"), role: "robot" }, /unknown role `robot`/],
    ["an empty user message", userMessage(" "), /content must not be empty/],
    ["an empty system message", systemMessage(""), /content must not be empty/],
    ["a tool message that answers nothing", { ...toolMessage({ id: "", name: "t" }, "x") }, /tool_call_id/],
    ["a tool message without a name", { ...toolMessage({ id: "c", name: "" }, "x") }, /name/],
    [
      "an assistant that says and does nothing",
      { ...conversation().assistant("").messages[0] },
      /content or tool_calls/,
    ],
    [
      "a call without an id",
      conversation().assistant("", { id: "", name: "t", args: {} }).messages[0],
      /needs an id/,
    ],
    [
      "a call without a name",
      conversation().assistant("", { id: "c", name: "", args: {} }).messages[0],
      /needs a name/,
    ],
  ])("include %s, with its location", (_, message, fault) => {
    // The point is what the types do not let through.
    const [first, ...more] = validate([userMessage("fine"), message as Message]);
    expect(first).toMatch(/^messages\[1\]: /);
    expect(first).toMatch(fault);
    expect(more).toEqual([]);
  });

  test("input must have at least one message and only the roles user and system", () => {
    expect(validateUserInput([userMessage("a"), systemMessage("b")])).toEqual([]);
    expect(validateUserInput([])).toEqual(["messages: must contain at least one message"]);
    expect(validateUserInput(talk)).toHaveLength(3);
  });

  test("there are exactly four roles, and input can have two of them", () => {
    const names = ["system", "user", "assistant", "tool", "root", ""];
    expect(names.filter(isRole)).toEqual(["system", "user", "assistant", "tool"]);
    expect(names.filter(isUserInputRole)).toEqual(["system", "user"]);
  });
});

describe("unanswered calls", () => {
  const two = conversation()
    .user("go")
    .assistant("", { id: "a", name: "t", args: {} }, { id: "b", name: "t", args: {} });

  test("are the calls of the last assistant message that have no result", () => {
    expect(unanswered(two.messages).map(({ id }) => id)).toEqual(["a", "b"]);
    expect(unanswered(two.tool("b", "t", "done").messages).map(({ id }) => id)).toEqual(["a"]);
    expect(unanswered(two.tool("b", "t", "1").tool("a", "t", "2").messages)).toEqual([]);
    expect(unanswered(two.tool("a", "t", "1").tool("b", "t", "2").assistant("ok").messages)).toEqual([]);
    expect(unanswered([])).toEqual([]);
  });

  test("are still open after another user message", () => {
    expect(unanswered(two.user("never mind").messages)).toHaveLength(2);
  });
});
