import { describe, expect, test } from "vitest";
import { conversation, toolMessages, unanswered } from "../../../src/agent/core/message.ts";
import { done, failed, interrupted } from "../../../src/agent/core/tool.ts";
import { loopDetection } from "../../../src/agent/hooks/loop-detection.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { type Play, plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { made } from "./made.ts";

const NOTE = /You have called `look` (\d+) times with the same arguments/;
const look = (args: Record<string, unknown> = { at: "door" }) => ({ tool: "look", args });

/** A run in which the model makes these calls, and says ok then. */
async function calling(turns: Turn["call"][], more: Play = {}, options = {}) {
  let ran = 0;
  const looking = plainTool("look", () => {
    ran++;
    return "a door";
  });
  const played = await play({
    script: [...turns.map((call) => ({ call })), { say: "ok" }],
    tools: [looking],
    hooks: [made(loopDetection, { options })],
    ...more,
  });
  const results = toolMessages(played.messages);
  const told = results.map(({ content }) => Number(NOTE.exec(String(content))?.[1] ?? 0));
  return { ...played, ran, results, told };
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

test.each([{ warn_at: 5 }, { end_at: 11 }])(
  "%j is refused because the warning must come before the end",
  (options) => expect(loopDetection.options.safeParse(options).success).toBe(false),
);

test("the third identical call still runs, and its result warns the model", async () => {
  const { told, results, outcome } = await calling(times(3, [look()]));
  expect(told).toEqual([0, 0, 3]);
  expect(results[2]?.content).toMatch(/^a door\n\n\[You have called/);
  expect(outcome.status).toBe("success");
});

test("the fifth does not run, and the run ends with its work kept", async () => {
  const { outcome, ran, results, messages, events } = await calling(times(9, [look()]));
  expect(ran).toBe(4);
  expect(results.at(-1)?.error).toBe("Not run: `look` was called 5 times with the same arguments.");
  expect(outcome).toMatchObject({ status: "error", stop_reason: "loop_detected" });
  expect(dataOf(events, "done")[0]).toMatchObject({
    ...{ status: "error", stop_reason: "loop_detected" },
    message:
      "The run stopped because `look` was called 5 times with the same arguments. Send a message to continue.",
  });
  expect(unanswered(messages)).toEqual([]);
});

test("other arguments, or another tool, do not count as a loop", async () => {
  const turns = Array.from({ length: 9 }, (_, at) => [look({ at })]);
  expect((await calling(turns)).told).toEqual(times(9, 0));
});

test("the order of arguments makes no difference, at any depth", async () => {
  const one = look({ a: 1, b: { c: [1, 2], d: 2 } });
  const other = look({ b: { d: 2, c: [1, 2] }, a: 1 });
  expect((await calling([[one], [other], [one]])).told).toEqual([0, 0, 3]);
  const swapped = look({ a: 1, b: { c: [2, 1], d: 2 } });
  expect((await calling([[one], [swapped], [one]])).told).toEqual([0, 0, 0]);
});

test("arguments that are not JSON are compared as text", async () => {
  const broken = (malformed: string) => ({ tool: "look", malformed });
  const same = await calling(times(3, [broken("{a")]));
  expect(same.told).toEqual([0, 0, 3]);
  expect(same.results[2]?.error).toContain("one JSON object");
  expect((await calling([[broken("{a")], [broken("{b")], [broken("{c")]])).told).toEqual([0, 0, 0]);
});

test("two alternating calls count as a loop too", async () => {
  const turns = Array.from({ length: 8 }, (_, at) => [look({ at: at % 2 })]);
  const { told } = await calling(turns);
  expect(told).toEqual([0, 0, 0, 0, 3, 3, 4, 4]);
});

test("calls outside of the window do not count", async () => {
  const others = Array.from({ length: 4 }, (_, at) => [look({ at })]);
  const { told } = await calling([[look()], [look()], ...others, [look()]], {}, { window: 5 });
  expect(told).toEqual(times(7, 0));
});

test("parallel calls count one by one, and those before the last one finish", async () => {
  const { told, ran, results, outcome } = await calling([times(6, look())]);
  expect(ran).toBe(4);
  const byCall = results.toSorted((a, b) => (a.tool_call_id < b.tool_call_id ? -1 : 1));
  expect(byCall.map(({ error }) => error !== undefined)).toEqual([false, false, false, false, true, true]);
  expect(told.toSorted()).toEqual([0, 0, 0, 0, 3, 4]);
  expect(outcome).toMatchObject({ status: "error", stop_reason: "loop_detected" });
});

test("an excluded tool can be called repeatedly", async () => {
  const { told, outcome } = await calling(times(9, [look()]), {}, { except: ["look"] });
  expect(told).toEqual(times(9, 0));
  expect(outcome.status).toBe("success");
});

describe("counting begins", () => {
  const asked = (count: number) => {
    let talk = conversation().user("look");
    for (let nth = 0; nth < count; nth++) {
      const call = { id: `before_${nth}`, name: "look", args: { at: "door" } };
      talk = talk.assistant("", call).tool(call.id, "look", "a door");
    }
    return [...talk.messages];
  };

  test("with the user's last message", async () => {
    const { told, ran, outcome } = await calling([[look()]], { input: { messages: asked(4) } });
    expect(told).toEqual(times(5, 0));
    expect(ran).toBe(1);
    expect(outcome.status).toBe("success");
  });

  test("and continues in a resumed run", async () => {
    const played = await calling([[look()], [look()]], {
      say: null,
      input: { messages: asked(3), attempt: 2 },
    });
    expect(played.told).toEqual([0, 0, 0, 4, 0]);
    expect(played.outcome).toMatchObject({ status: "error", stop_reason: "loop_detected" });
  });

  test("and counts a call that waited for an answer once", async () => {
    const waiting = plainTool("look", () => interrupted());
    const first = await calling([[look()]], { tools: [waiting] });
    expect(first.outcome.status).toBe("interrupted");
    const { told } = await calling([[look()], [look()]], { say: null, input: { messages: first.messages } });
    expect(told).toEqual([0, 0, 3]);
  });
});

test("a failed call keeps its error in addition to the note", async () => {
  const { results } = await calling(times(3, [look()]), { tools: [plainTool("look", () => failed("dark"))] });
  expect(results[2]).toMatchObject({ error: "dark", content: expect.stringMatching(NOTE) });
});

test("a result with parts keeps every part", async () => {
  const image = { type: "image", media_type: "image/png", data: "aGk=" } as const;
  const { results } = await calling(times(3, [look()]), { tools: [plainTool("look", () => done([image]))] });
  expect(results[2]?.content).toEqual([image, { type: "text", text: expect.stringMatching(NOTE) }]);
});
