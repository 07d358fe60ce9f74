import { describe, expect, test } from "vitest";
import {
  askFor,
  askTogether,
  forwardInterrupts,
  inCallOrder,
  openInterrupts,
} from "../../../src/agent/core/open-interrupts.ts";
import { done, interrupted } from "../../../src/agent/core/tool.ts";
import type { Answer, Interrupt } from "../../../src/protocol/interrupt.ts";
import { type Play, type Played, plainTool, play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";

const asks = (id: string, more: Partial<Interrupt> = {}): Interrupt => ({
  ...{ id, kind: "approval", call_id: `call of ${id}`, run_id: "run_child", name: "execute" },
  ...{ args: { command: "rm x" }, prompt: "May it?", created_at: "2026-01-01T00:00:00.000Z" },
  ...more,
});

/** A tool that works for as long as its child waits for something. */
function delegate(child: { waits: Interrupt[] }) {
  const got: Answer[][] = [];
  const tool = plainTool("delegate", async function* (_args, call, run) {
    const from = { call, agent: "coder", name: "coder-1", thread_id: "th_child" };
    const answers = yield* forwardInterrupts(from, child.waits, run);
    got.push(answers);
    return answers.length < child.waits.length ? interrupted() : done("The child is done.");
  });
  return { tool, got };
}

const begin = (tool: Play["tools"], more: Play = {}) =>
  play({ script: [{ call: [{ tool: "delegate", id: "c1" }] }, { say: "ok" }], ...given(tool), ...more });
const given = (tools: Play["tools"]) => (tools ? { tools } : {});
const resumeRun = (
  { messages, state }: Played,
  tool: Play["tools"],
  answers: Answer[] = [],
  more: Play = {},
) => play({ say: null, ...given(tool), ...more, input: { messages, state, answers } });

test("an unattended run asks no one, but still waits for calls that the front end executes", async () => {
  const asking = (kind: Interrupt["kind"]) =>
    plainTool(kind, async function* (_args, call, run) {
      const answer = yield* askFor({ call, kind, prompt: "?" }, run);
      return answer ? done(answer.decision) : interrupted();
    });
  const kinds = ["approval", "question", "tool"] as const;
  const interrupts = { onExpiry: "approve", unattended: true } as const;
  const tools = kinds.map(asking);
  const first = await play({
    ...{ script: [{ call: kinds.map((kind) => ({ tool: kind, id: kind })) }], tools, interrupts },
  });
  const { events, outcome } = first;
  expect(dataOf(events, "on_tool_end").map(({ call_id, output }) => [call_id, output])).toEqual([
    ["approval", "deny"],
    ["question", "deny"],
    ["tool", undefined],
  ]);
  expect(dataOf(events, "on_interrupt")).toMatchObject([{ id: "tool_tool" }]);
  expect(outcome.status).toBe("interrupted");
  expect((await resumeRun(first, tools, [], { interrupts })).outcome.status).toBe("interrupted");
});

test("calls that need the same account ask once, even if the address to open arrives slowly", async () => {
  const address = Promise.withResolvers<{ url: string; prompt: string }>();
  const tool = plainTool("account__use", async function* (_args, call, run) {
    if (call.id === "second") address.resolve({ url: "https://accounts.test", prompt: "Open it." });
    const withAddress = () => address.promise;
    const question = { call, kind: "connect", prompt: "Connect it.", withAddress } as const;
    const answer = yield* askTogether(question, run, "account__");
    return answer ? done(answer.decision) : interrupted();
  });
  const call = ["first", "second"].map((id) => ({ tool: "account__use", id }));
  const { events, outcome } = await play({ script: [{ call }], tools: [tool] });
  expect(dataOf(events, "on_interrupt")).toMatchObject([{ call_id: "first", prompt: "Open it." }]);
  expect(outcome.status).toBe("interrupted");
});

describe("a subagent's question", () => {
  test("is shown as the parent's own, and answered with the child's ids", async () => {
    const child = {
      waits: [asks("approval_a"), asks("question_b", { kind: "question", options: ["yes", "no"] })],
    };
    const { tool, got } = delegate(child);
    const first = await begin([tool]);
    const [shown, other] = dataOf(first.events, "on_interrupt");
    expect(shown).toMatchObject({
      ...{ id: "th_child:approval_a", kind: "approval", call_id: "c1", name: "execute", prompt: "May it?" },
      asked_by: { agent: "coder", name: "coder-1", thread_id: "th_child", id: "approval_a" },
    });
    expect(shown?.run_id).not.toBe("run_child");
    expect(other).toMatchObject({ kind: "question", options: ["yes", "no"] });
    expect(openInterrupts(first.state)).toEqual([shown, other]);

    const second = await resumeRun(first, [tool], [{ id: "th_child:approval_a", decision: "approve" }]);
    expect(got.at(-1)).toEqual([{ id: "approval_a", decision: "approve" }]);
    expect(dataOf(second.events, "on_resume")).toEqual([
      { id: "th_child:approval_a", name: "execute", decision: "approve" },
    ]);
    expect(dataOf(second.events, "on_interrupt")).toEqual([other]);

    const third = await resumeRun(
      second,
      [tool],
      [{ id: "th_child:question_b", decision: "respond", message: "yes" }],
    );
    expect(got.at(-1)).toEqual([
      { id: "approval_a", decision: "approve" },
      { id: "question_b", decision: "respond", message: "yes" },
    ]);
    expect(third.outcome.status).toBe("success");
    expect(third.state.get("interrupts")).toEqual({});
  });

  test("is no longer open once the child has stopped waiting for it", async () => {
    const child = { waits: [asks("approval_a"), asks("approval_b")] };
    const { tool } = delegate(child);
    const first = await begin([tool]);
    child.waits = [asks("approval_b")];
    const second = await resumeRun(first, [tool]);
    expect(openInterrupts(second.state).map(({ id }) => id)).toEqual(["th_child:approval_b"]);
  });

  test("is asked again if a later call of the child has the same id, so no answer counts twice", async () => {
    const child = { waits: [asks("approval_a")] };
    const { tool, got } = delegate(child);
    const first = await begin([tool]);
    child.waits = [asks("approval_a"), asks("approval_b")];
    const answer = { id: "th_child:approval_a", decision: "approve" } as const;
    const second = await resumeRun(first, [tool], [answer]);
    expect(got.at(-1)).toMatchObject([{ id: "approval_a" }]);
    const later = asks("approval_a", { args: { command: "rm y" }, created_at: "2026-01-01T00:00:01.000Z" });
    child.waits = [later];
    const third = await resumeRun(second, [tool], [answer]);
    expect(got.at(-1)).toEqual([]);
    expect(openInterrupts(third.state)).toMatchObject([
      { id: "th_child:approval_a", args: { command: "rm y" } },
    ]);
    await resumeRun(third, [tool], [answer]);
    expect(got.at(-1)).toEqual([{ id: "approval_a", decision: "approve" }]);
  });

  test("is not answered by the input of the run that asked it", async () => {
    const { tool, got } = delegate({ waits: [asks("approval_a")] });
    const { messages, state, events } = await begin([tool]);
    const [shown] = dataOf(events, "on_interrupt");
    const answers: Answer[] = [{ id: "th_child:approval_a", decision: "approve" }];
    const again = { id: shown?.run_id ?? "", attempt: 2 };
    const second = await play({ say: null, tools: [tool], input: { ...again, messages, state, answers } });
    expect(got.at(-1)).toEqual([]);
    expect(second.outcome.status).toBe("interrupted");
  });

  test("from a grandchild names the agent that asks and keeps its expiry", async () => {
    const asked_by = { agent: "tester", name: "tester-1", thread_id: "th_grandchild", id: "approval_a" };
    const expires_at = "2026-01-02T00:00:00.000Z";
    const child = { waits: [asks("th_grandchild:approval_a", { asked_by, expires_at })] };
    const { events } = await begin([delegate(child).tool]);
    expect(dataOf(events, "on_interrupt")).toMatchObject([
      { id: "th_child:th_grandchild:approval_a", asked_by, expires_at },
    ]);
  });

  test("is denied immediately in unattended runs, except for client tools", async () => {
    const child = { waits: [asks("approval_a"), asks("tool_b", { kind: "tool" })] };
    const { tool, got } = delegate(child);
    const interrupts = { onExpiry: "approve", unattended: true } as const;
    const { events } = await begin([tool], { interrupts });
    expect(got.at(-1)).toMatchObject([{ id: "approval_a", decision: "deny" }]);
    expect(dataOf(events, "on_interrupt").map(({ id }) => id)).toEqual(["th_child:tool_b"]);
  });
});

test("interrupts have the order of the calls, even if parallel calls ask in a different order", () => {
  const asked = [
    { id: "approval_c", call_id: "c" },
    { id: "question_b", call_id: "b" },
    { id: "approval_a", call_id: "a" },
    { id: "tool_b", call_id: "b" },
  ];
  const ids = inCallOrder(asked, ["a", "b", "c"]).map(({ id }) => id);
  expect(ids).toEqual(["approval_a", "question_b", "tool_b", "approval_c"]);
});
