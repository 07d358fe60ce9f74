import { describe, expect, test } from "vitest";
import type { Model } from "../../../src/agent/core/model.ts";
import { retry } from "../../../src/agent/hooks/retry.ts";
import { scriptedModel, type Turn } from "../../../src/agent/models/scripted.ts";
import { play } from "../../support/agent.ts";
import { dataOf, textSeen } from "../../support/drain.ts";
import { made } from "./made.ts";

const quick = (options = {}) => made(retry, { options: { base_ms: 1, ...options } });
const failing = (code: string, retry_after_ms?: number): Turn => ({
  fail: { code, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) },
});
const overloaded = failing("model_overloaded");
const withFallback = (model: Model, fallback: Model): Model => ({ ...model, fallback });

describe("a temporarily unavailable model", () => {
  test.each(["model_rate_limited", "model_overloaded", "model_unreachable", "model_timeout"])(
    "is called again after %s",
    async (code) => {
      const { outcome } = await play({ script: [failing(code), { say: "hi" }], hooks: [quick()] });
      expect(outcome).toMatchObject({ status: "success", message: { content: "hi" } });
    },
  );

  test("leaves only its final output, and every attempt is closed", async () => {
    const { events, messages } = await play({
      script: [{ say: "half", fail: { code: "model_overloaded" } }, { say: "whole" }],
      hooks: [quick()],
    });
    expect(messages.map((message) => message.content)).toEqual(["hello", "whole"]);
    expect(dataOf(events, "on_chat_model_end").map((end) => end.error?.code)).toEqual([
      "model_overloaded",
      undefined,
    ]);
  });

  test("is announced before each wait", async () => {
    const { events } = await play({ script: [overloaded, overloaded, { say: "hi" }], hooks: [quick()] });
    const warnings = dataOf(events, "warning");
    expect(warnings.map(({ code }) => code)).toEqual(["model_retry", "model_retry"]);
    expect(warnings[1]?.message).toMatch(
      /^Model `scripted:test` failed \(model_overloaded\)\. Retrying in [\d.]+ s \(attempt 3 of 10\)\.$/,
    );
  });

  test("is called ten times while it is busy, and three times if it does not respond or has a fallback, or as often as configured", async () => {
    const asked = async (code: string, more: object = {}, options = {}) => {
      const script = Array.from({ length: 12 }, () => failing(code));
      const model = { ...scriptedModel(script), ...more };
      const { events } = await play({ model, hooks: [quick({ cap_ms: 1, ...options })] });
      return dataOf(events, "on_chat_model_start").filter((start) => start.model === model.name).length;
    };
    expect(await asked("model_overloaded")).toBe(10);
    expect(await asked("model_rate_limited")).toBe(10);
    expect(await asked("model_unreachable")).toBe(3);
    expect(await asked("model_overloaded", {}, { attempts: 4 })).toBe(4);
    const fallback = scriptedModel([{ say: "hi" }], "scripted:two");
    expect(await asked("model_overloaded", { fallback })).toBe(3);
  });

  test("is abandoned if the next attempt would exceed `patience`, and the error contains the elapsed time", async () => {
    const waiting = failing("model_overloaded", 1500);
    const { outcome, events } = await play({
      script: [waiting, waiting, waiting, { say: "hi" }],
      hooks: [quick({ patience: 2.5 })],
    });
    expect(dataOf(events, "on_chat_model_start")).toHaveLength(2);
    expect(outcome).toMatchObject({
      status: "error",
      error: {
        code: "model_overloaded",
        message: expect.stringMatching(/\. All 2 attempts within \d+(\.\d)? s failed\.$/),
        details: { attempts: 2, waited_ms: expect.any(Number) },
      },
    });
  });
});

test.each(["model_rejected", "model_auth", "context_overflow"])("%s is not retried", async (code) => {
  const { outcome, events } = await play({ script: [failing(code), { say: "hi" }], hooks: [quick()] });
  expect(outcome).toMatchObject({ status: "error", error: { code } });
  expect(dataOf(events, "warning")).toEqual([]);
});

describe("a provider that sends a retry time", () => {
  test("is not called before that time", async () => {
    const started = performance.now();
    const { outcome, events } = await play({
      script: [failing("model_rate_limited", 60), { say: "hi" }],
      hooks: [quick()],
    });
    expect(outcome.status).toBe("success");
    expect(performance.now() - started).toBeGreaterThanOrEqual(55);
    expect(dataOf(events, "warning")[0]?.message).toContain("Retrying in 0.1 s");
  });

  test("is not waited for if the wait would exceed a minute", async () => {
    const { outcome, events } = await play({
      script: [failing("model_rate_limited", 60_001), { say: "hi" }],
      hooks: [quick()],
    });
    expect(outcome).toMatchObject({ status: "error", error: { code: "model_rate_limited" } });
    expect(dataOf(events, "warning")).toEqual([]);
  });
});

test("cancelling ends the wait immediately", async () => {
  const cancel = new AbortController();
  const { outcome, events } = await play({
    script: [failing("model_rate_limited", 50_000), { say: "hi" }],
    hooks: [quick()],
    input: { signal: cancel.signal },
    onEvent: ({ event }) => {
      if (event === "warning") setImmediate(() => cancel.abort());
    },
  });
  expect(outcome.status).toBe("cancelled");
  expect(dataOf(events, "on_chat_model_start")).toHaveLength(1);
});

describe("a fallback", () => {
  const second = () => scriptedModel([overloaded, { say: "from two" }, { say: "again two" }], "scripted:two");

  test("is called once the attempts are used up, with its own attempts", async () => {
    const one = scriptedModel([overloaded, overloaded], "scripted:one");
    const { outcome, events } = await play({
      model: withFallback(one, second()),
      hooks: [quick({ attempts: 2 })],
    });
    expect(outcome).toMatchObject({ message: { content: "from two", model: "scripted:two" } });
    const codes = dataOf(events, "warning").map(({ code }) => code);
    expect(codes).toEqual(["model_retry", "model_fallback", "model_retry"]);
    const asked = dataOf(events, "on_chat_model_start").map(({ model }) => model);
    expect(asked).toEqual(["one", "one", "two", "two"].map((name) => `scripted:${name}`));
  });

  test.each([failing("model_auth"), failing("model_rate_limited", 100_000)])(
    "is called immediately if waiting would not help",
    async (failure) => {
      const one = scriptedModel([failure], "scripted:one");
      const { outcome, events } = await play({
        model: withFallback(one, scriptedModel([{ say: "two" }], "scripted:two")),
        hooks: [quick()],
      });
      expect(outcome.status).toBe("success");
      expect(dataOf(events, "warning")[0]?.code).toBe("model_fallback");
      expect(textSeen(events)).toBe("two");
    },
  );

  test("is called in order if there are several, and the last one is used for the rest of the run", async () => {
    const auth = (name: string) => scriptedModel([failing("model_auth")], name);
    const last = scriptedModel([{ call: [{ tool: "nothing" }] }, { say: "done" }], "scripted:three");
    const { outcome, events } = await play({
      model: withFallback(auth("scripted:one"), withFallback(auth("scripted:two"), last)),
      hooks: [quick()],
    });
    expect(outcome.status).toBe("success");
    const asked = dataOf(events, "on_chat_model_start").map(({ model }) => model);
    expect(asked).toEqual(["one", "two", "three", "three"].map((name) => `scripted:${name}`));
  });

  test("is not called for errors that another model would return too", async () => {
    const one = scriptedModel([failing("model_rejected")], "scripted:one");
    const { outcome } = await play({ model: withFallback(one, second()), hooks: [quick()] });
    expect(outcome).toMatchObject({ status: "error", error: { code: "model_rejected" } });
  });
});
