import { expect, test } from "vitest";
import { type CallState, movesOf, stateAfter } from "../../../src/agent/core/deferred-calls.ts";
import { deliveredResult, lateMessage, nextStep } from "../../../src/agent/core/delivered-result.ts";
import { conversation } from "../../../src/agent/core/message.ts";
import { resultMessage } from "../../../src/agent/core/tool.ts";
import { newCall } from "../../engine/stores/fixture-calls.ts";

const CALL = { id: "call_1", name: "weather", args: {} };
const asked = conversation().user("Will it rain?").assistant("", CALL);
const answered = asked.tool("call_1", "weather", "Pending").user("Something else.");
const callThatIs = (state: CallState) => ({ ...newCall("call_1"), state, reply: { result: "Rain." } });

test("a waiting call lets its thread continue, and is settled once it has its answer", () => {
  for (const state of ["accepted", "delivered"] as const)
    expect(nextStep(callThatIs(state), asked.messages, "interrupted")).toBe("resume");
  expect(nextStep(callThatIs("accepted"), answered.messages, "success")).toBe("forget");
  const delivered = callThatIs("delivered");
  const result = resultMessage(CALL, deliveredResult(delivered));
  expect(nextStep(delivered, [...asked.messages, result], "success")).toBe("forget");
});

test("a delivered result becomes a message of the thread if the call already has another result", () => {
  const call = callThatIs("delivered");
  expect(nextStep(call, answered.messages, "success")).toBe("tell");
  expect(nextStep(call, [...answered.messages, lateMessage(call)], "success")).toBe("ask");
});

test("a late result is added to the thread once", () => {
  const call = callThatIs("late");
  expect(nextStep(call, answered.messages, "success")).toBe("tell");
  const told = [...answered.messages, lateMessage(call)];
  expect(nextStep(call, [...told, ...conversation().assistant("I see.").messages], "success")).toBe("forget");
  expect(lateMessage(call).id).toBe(lateMessage(call).id);
  expect(lateMessage(call).id).not.toBe(lateMessage(callThatIs("late")).id);
});

test("a late result that the thread contains but the model has not seen is sent to the model, unless a run ended with it", () => {
  const call = callThatIs("late");
  const told = [...answered.messages, lateMessage(call)];
  expect(nextStep(call, told, "success")).toBe("ask");
  for (const ended of ["error", "cancelled"] as const) expect(nextStep(call, told, ended)).toBe("forget");
});

test("an abandoned call is settled once it has expired", () => {
  expect(nextStep(callThatIs("left"), answered.messages, "success")).toBe("forget");
});

test("a late result appears as the tool's output, with its error", () => {
  const text = lateMessage({ ...callThatIs("late"), reply: { error: "No such city.", result: "near Oslo" } });
  expect(text).toMatchObject({
    role: "user",
    content: `[Not written by the user: the result of the call \`call_1\` of \`weather\`, which was pending, has been delivered.]

The call failed: No such city.

near Oslo`,
  });
});

test("only rewinding the thread discards an accepted result", () => {
  for (const change of ["accept", "deliver", "leave", "close"] as const)
    for (const state of ["delivered", "late"] as const) expect(stateAfter(change, state)).toBeUndefined();
  expect(movesOf("rewind").map(([from]) => from)).toEqual(["sent", "accepted", "delivered"]);
});
