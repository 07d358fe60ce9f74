import { describe, expect, test } from "vitest";
import { assistantMessage } from "../../../src/agent/core/message.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import {
  fromMiddleware,
  type Middleware,
  withLogger,
  withOutputGuardrail,
  withRecovery,
  withTimeout,
} from "../../../src/skein/adapters/index.ts";
import { gate, gated } from "../../support/gate.ts";
import { agentWith, runtimeWith } from "../../support/library.ts";

const spawn = (middleware: Middleware[], script: readonly Turn[] = [{ say: "an answer" }], more = {}) =>
  runtimeWith().spawn(agentWith(script, { hooks: [fromMiddleware(...middleware)], ...more }), {
    input: "go",
  });

const noted =
  (name: string, lines: string[]): Middleware =>
  (next) =>
  async (context) => {
    lines.push(`${name} in`);
    try {
      return await next(context);
    } finally {
      lines.push(`${name} out`);
    }
  };

describe("middleware around a run", () => {
  test("is entered in order, the first outermost, once for a run with several model calls", async () => {
    const lines: string[] = [];
    const { tool, open } = gate();
    open();
    await spawn([noted("a", lines), noted("b", lines)], gated, { tools: [tool] }).result;
    expect(lines).toEqual(["a in", "b in", "b out", "a out"]);
  });

  test("is left however the run ends", async () => {
    const lines: string[] = [];
    const { tool, entered } = gate();
    const handle = spawn([noted("a", lines)], gated, { tools: [tool] });
    await entered;
    await handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    expect(lines).toEqual(["a in", "a out"]);
  });

  test("can answer instead of the model, or replace an answer", async () => {
    const instead = spawn([() => async () => assistantMessage("cached")], []);
    expect((await instead.result).text).toBe("cached");
    const louder: Middleware = (next) => async (context) => {
      const message = await next(context);
      return { ...message, content: message.content.toUpperCase() };
    };
    const { text, messages } = await spawn([louder]).result;
    expect(text).toBe("AN ANSWER");
    expect(messages.at(-1)?.content).toBe("AN ANSWER");
  });

  test("can answer instead of an error", async () => {
    const fallback: Middleware = (next) => (context) =>
      next(context).catch((error: Error) => assistantMessage(`Sorry: ${error.message}`));
    const script = [{ fail: { code: "model_auth", message: "no key" } }];
    expect((await spawn([fallback], script).result).text).toBe("Sorry: no key");
  });

  test("that refuses before the run fails it before the model is called", async () => {
    const refusing: Middleware = () => async () => {
      throw new Error("closed on Sundays");
    };
    const { status, error, messages } = await spawn([refusing]).result;
    expect({ status, message: error?.message }).toEqual({ status: "error", message: "closed on Sundays" });
    expect(messages.map(({ role }) => role)).toEqual(["user"]);
  });
});

describe("common middleware", () => {
  test("a timeout ends a run during a model call or a tool", async () => {
    const slow = spawn([withTimeout(20)], [{ say: "slow", delay_ms: 60_000 }]);
    expect((await slow.result).error).toMatchObject({ message: "The run took longer than 20 ms." });
    const stuck = spawn([withTimeout(20)], gated, { tools: [gate().tool] });
    expect((await stuck.result).error).toMatchObject({ message: "The run took longer than 20 ms." });
    expect((await spawn([withTimeout(60_000)]).result).status).toBe("success");
  });

  test("recovery turns an error thrown further inside into one with its text", async () => {
    const seen: unknown[] = [];
    const watching: Middleware = (next) => (context) =>
      next(context).catch((error: unknown) => {
        seen.push(error);
        throw error;
      });
    const panicking: Middleware = () => () => {
      throw new TypeError("boom");
    };
    const { error } = await spawn([watching, withRecovery(), panicking]).result;
    expect(error).toMatchObject({ code: "run_aborted", message: "boom" });
    expect(seen).toMatchObject([{ code: "run_aborted" }]);
  });

  test("a logger reports when a run begins, how it ends and after how long", async () => {
    const lines: unknown[] = [];
    const write = (details: object, message: string) => void lines.push({ message, ...details });
    const logger = withLogger({ info: write, error: write }, "clerk");
    await spawn([logger]).result;
    await spawn([logger], [{ fail: { code: "model_auth" } }]).result;
    const run = { agent: "clerk", run_id: expect.stringMatching(/^run_/) };
    expect(lines).toEqual([
      { message: "run started", ...run },
      { message: "run finished", ...run, duration_ms: expect.any(Number) },
      { message: "run started", ...run },
      {
        ...{ message: "run failed", ...run, duration_ms: expect.any(Number) },
        err: expect.objectContaining({ code: "model_auth" }),
      },
    ]);
  });

  test("an output guardrail keeps an answer out of the thread, and is not called for failures", async () => {
    const checked: string[] = [];
    const guardrail = withOutputGuardrail(({ content }) => {
      checked.push(content);
      if (content.includes("damn")) throw new Error("Mind your language.");
    });
    const refused = spawn([guardrail], [{ say: "damn" }]);
    expect((await refused.result).error).toMatchObject({ message: "Mind your language." });
    expect((await refused.history()).map(({ role }) => role)).toEqual(["user"]);
    expect((await spawn([guardrail]).result).text).toBe("an answer");
    await spawn([guardrail], [{ fail: { code: "model_auth" } }]).result;
    expect(checked).toEqual(["damn", "an answer"]);
  });

  test("an output guardrail is called again for the answer to a message that arrived meanwhile", async () => {
    const { tool, open, entered } = gate();
    let checks = 0;
    const guardrail = withOutputGuardrail(() => void checks++);
    const nudging = () => {
      let nudged = false;
      return {
        name: "nudging",
        onStop: () => {
          if (nudged) return undefined;
          nudged = true;
          return { ...assistantMessage(""), role: "user" as const, content: "And?" };
        },
      };
    };
    open();
    const handle = spawn([guardrail], [...gated, { say: "Really through." }], { tools: [tool] });
    await entered;
    await handle.result;
    expect(checks).toBe(1);
    const hooks = [fromMiddleware(guardrail), nudging];
    const twice = runtimeWith().spawn(agentWith([{ say: "one" }, { say: "two" }], { hooks }), {
      input: "go",
    });
    expect((await twice.result).text).toBe("two");
    expect(checks).toBe(3);
  });
});
