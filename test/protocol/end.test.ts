// How a run ended, and what a person reads about it.

import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/agent/core/message.ts";
import { doneEvent, type End, endOf, failureOf, kindOfEnd, trackEnd } from "../../src/protocol/end.ts";
import { causeText, endText, limitText } from "../../src/protocol/end-texts.ts";
import type { EventData, StreamEvent } from "../../src/protocol/event.ts";
import type { Interrupt } from "../../src/protocol/interrupt.ts";

const question: Interrupt = {
  id: "q",
  kind: "approval",
  call_id: "call",
  run_id: "run",
  name: "execute",
  args: {},
  prompt: "May it?",
  created_at: "2026-01-01T00:00:00.000Z",
};
type Status = EventData<"done">["status"];
const done = (status: Status, stop_reason: string) => doneEvent({ status, stop_reason, usage: NO_USAGE });

describe("a person learns why a run stopped", () => {
  test.each([
    ["max_iterations", { limit: "max_iterations", most: 25 }, "after 25 model calls (`max_iterations`)"],
    ["max_iterations", { limit: "max_iterations", most: 1 }, "after 1 model call (`max_iterations`)"],
    [
      "token_budget",
      { limit: "budgets.tokens", most: 1_000_000 },
      "after 1,000,000 tokens (`budgets.tokens`)",
    ],
    ["time_budget", { limit: "budgets.seconds", most: 90 }, "after 90 seconds (`budgets.seconds`)"],
    ["time_budget", { limit: "budgets.seconds", most: 1800 }, "after 30 minutes (`budgets.seconds`)"],
    ["time_budget", { limit: "budgets.seconds", most: 3600 }, "after 1 hour (`budgets.seconds`)"],
    ["loop_detected", {}, "at a limit (`loop_detected`)"],
  ])("at the limit %s of %o", (reason, details, expected) => {
    expect(limitText(reason, details)).toBe(`The run stopped ${expected}. Send a message to continue.`);
  });

  test("in the words of a quota or a plugin, if there is no number", () => {
    const message = "Your limit `cost_per_day`, 5 EUR, is used up.";
    expect(limitText("quota", { limit: "cost_per_day", most: 5, message })).toBe(message);
    expect(limitText("token_budget", { limit: "budgets.tokens", message: "No more today." })).toBe(
      "No more today.",
    );
    expect(causeText("`ls` was called 5 times")).toBe(
      "The run stopped because `ls` was called 5 times. Send a message to continue.",
    );
  });

  test.each<[Status, string, string]>([
    ["cancelled", "cancelled", "The run was stopped."],
    ["cancelled", "credentials_revoked", "The run was stopped because its credentials were revoked."],
    ["cancelled", "superseded", "A new message arrived before the result that the run was waiting for."],
    ["interrupted", "interrupt", "The run stopped after a step. Send a message to continue."],
    ["success", "refusal", "The model declined to answer."],
    ["success", "max_tokens", "The answer was cut off at the model's token limit."],
  ])("after the end %s with the reason %s", (status, reason, expected) => {
    expect(done(status, reason).data.message).toBe(expected);
  });

  test("if a model answered nothing, but not after an ordinary end", () => {
    expect(endText({ status: "success", stop_reason: "end_turn", isEmpty: true })).toBe(
      "The model returned no answer.",
    );
    for (const [status, reason] of [
      ["success", "end_turn"],
      ["interrupted", "tool_use"],
      ["success", "constructor"],
    ] as const)
      expect(done(status, reason).data).not.toHaveProperty("message");
  });

  test("even in the log of an older release, whose last event has no sentence", () => {
    const { event, data } = done("cancelled", "cancelled");
    const { message, ...older } = data;
    expect(endOf({ event, data: older }, []).message).toBe(message);
    const details = { limit: "max_iterations", message: "It was enough." };
    const limited = { ...older, status: "error", stop_reason: "max_iterations", details } as const;
    expect(endOf({ event, data: limited }, []).message).toBe("It was enough.");
  });

  test("in the event's words, if a newer release uses others", () => {
    const { event, data } = done("success", "end_turn");
    expect(endOf({ event, data: { ...data, message: "News." } }, []).message).toBe("News.");
  });
});

describe("a run", () => {
  test.each<[End["as"], Status, string, boolean]>([
    ["finished", "success", "end_turn", false],
    ["finished", "interrupted", "interrupt", false],
    ["asks", "interrupted", "tool_use", true],
    ["waits", "interrupted", "tool_use", false],
    ["cancelled", "cancelled", "cancelled", true],
    ["limit", "error", "quota", false],
  ])("%s with the status %s, the reason %s and an open question: %s", (as, status, stop_reason, isAsking) => {
    expect(kindOfEnd({ status, stop_reason }, isAsking)).toBe(as);
  });

  const ask: StreamEvent = { event: "on_interrupt", data: question };
  const result = (tool_call_id: string): StreamEvent => ({
    event: "on_message",
    data: {
      message: {
        ...{ id: "m", created_at: question.created_at, role: "tool" },
        tool_call_id,
        name: "execute",
        content: "",
      },
    },
  });
  test.each<[string, readonly StreamEvent[], End["as"]]>([
    ["that asked waits for an answer", [ask], "asks"],
    [
      "that was answered waits for its deferred call",
      [ask, { event: "on_resume", data: { id: "q", decision: "approve" } }],
      "waits",
    ],
    ["whose call has its result waits for its deferred call", [ask, result("call")], "waits"],
    ["whose other call has its result still asks", [ask, result("other")], "asks"],
    ["does not ask what its subagent asked", [{ ...ask, path: ["call"] }], "waits"],
    [
      "does not ask what the run before it asked",
      [ask, { event: "run_start", data: { agent: "a", model: "m", attempt: 1 } }],
      "waits",
    ],
  ])("%s", (_, events, as) => {
    const track = trackEnd();
    for (const event of events) expect(track(event)).toBeUndefined();
    expect(track(done("interrupted", "tool_use"))?.as).toBe(as);
  });

  test("has a record with the reason why it stopped, like its last event", () => {
    const limit = { status: "error", stop_reason: "max_iterations", details: { message: "It was enough." } };
    expect(failureOf(limit)).toEqual({ code: "max_iterations", message: "It was enough." });
    const error = { code: "model_rejected", message: "Not this one.", details: { secret: 1 } };
    expect(failureOf({ status: "error", error })).toEqual({ code: error.code, message: error.message });
    expect(failureOf({ status: "cancelled", stop_reason: "cancelled" })).toBeUndefined();
  });

  test("that fails shows the text of its error", () => {
    const data = { code: "model_rejected", message: "Not this one." };
    expect(trackEnd()({ event: "error", data })).toMatchObject({
      ...{ as: "failed", reason: "model_rejected", message: "Not this one." },
    });
  });
});
