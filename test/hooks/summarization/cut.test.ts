import { describe, expect, test } from "vitest";
import { conversation } from "../../../src/core/message.ts";
import { cutPoint } from "../../../src/hooks/summarization/projection.ts";

const call = (id: string) => ({ id, name: "read_file", args: {} });
const PLENTY = 1_000_000;

/** A turn of the user with `steps` calls in it, and an answer. */
function turn(of: ReturnType<typeof conversation>, steps: number, name: string) {
  let turn = of.user(`request ${name}`);
  for (let step = 0; step < steps; step++)
    turn = turn.assistant("", call(`${name}${step}`)).tool(`${name}${step}`, "read_file", "x".repeat(400));
  return turn.assistant(`answer ${name}`);
}

describe("where a conversation is cut", () => {
  const talk = ["a", "b", "c", "d", "e"].reduce((of, name) => turn(of, 2, name), conversation()).messages;

  test("between two turns, with at least the newest tenth kept", () => {
    expect(talk[cutPoint(talk, 0.1, PLENTY)]).toMatchObject({ role: "user", content: "request e" });
    expect(talk[cutPoint(talk, 0.3, PLENTY)]).toMatchObject({ role: "user", content: "request d" });
  });

  test("between two steps where the turn is too long to be kept", () => {
    const { messages } = turn(turn(conversation(), 1, "a"), 50, "b");
    const at = cutPoint(messages, 0.1, 2000);
    expect(messages[at]).toMatchObject({ role: "assistant", tool_calls: [{ name: "read_file" }] });
    expect(messages.length - at).toBeGreaterThanOrEqual(Math.ceil(messages.length / 10));
    expect(messages.length - at).toBeLessThan(20);
  });

  test("later than the newest tenth where that alone is too large", () => {
    const small = Array.from({ length: 18 }).reduce<ReturnType<typeof conversation>>(
      (of, _, n) => of.user(`q${n}`).assistant(`a${n}`),
      conversation(),
    );
    const { messages } = small.user("x".repeat(8000)).assistant("ok").user("more").assistant("ok");
    const kept = messages.slice(cutPoint(messages, 0.1, 1000));
    expect(kept.map(({ content }) => content)).toEqual(["ok", "more", "ok"]);
  });

  test("never between a call and its results, whatever is kept", () => {
    const steps = turn(conversation(), 3, "a").assistant("", call("x"), call("y"));
    const { messages } = steps.tool("x", "read_file", "1").tool("y", "read_file", "2");
    for (let keep = 0.01; keep < 0.9; keep += 0.01)
      for (const room of [0, 100, PLENTY]) {
        const at = cutPoint(messages, keep, room);
        expect(messages[at]?.role).not.toBe("tool");
        expect(messages.length - at).toBeGreaterThanOrEqual(2);
      }
  });

  test("nowhere, while there is nothing to cut off", () => {
    expect(cutPoint([], 0.1, PLENTY)).toBe(0);
    expect(cutPoint(conversation().user("a").assistant("b").messages, 0.1, 0)).toBe(0);
    const { messages } = conversation()
      .assistant("", call("x"))
      .tool("x", "read_file", "1")
      .tool("y", "ls", "2");
    expect(cutPoint(messages, 0.1, 0)).toBe(0);
  });
});
