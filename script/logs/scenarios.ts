// The scenarios of the recorded logs: the models' answers and the client's actions.

import {
  type Answer,
  type Block,
  call,
  rawCall,
  say,
  think,
} from "../../test/support/fake-provider/script.ts";
import type { Client } from "./client.ts";

export interface Scenario {
  readonly agent?: string;
  /** The answers of each agent's model, in order. */
  readonly models: Readonly<Record<string, readonly Answer[]>>;
  drive(client: Client): Promise<unknown>;
}

export const AGENTS = `
defaults:
  backend: { type: local }
  permissions: { mode: bypass, rules: [{ ask: execute, message: May it? }] }
agents:
  assistant: { model: $assistant, tools: [ask_user, execute, current_datetime, write_todos, write_file, read_file, freight, quote] }
  fallen: { model: { $fallen, fallback: [{ $assistant }] }, hooks: { retry: { attempts: 1 } } }
  brief: { model: $brief, tools: [current_datetime], max_iterations: 1 }
  guarded: { model: $guarded, tools: [current_datetime], hooks: { guardrails: { input: { topics: [plutonium] }, output: { topics: [secret] } } } }
  lead: { model: $lead, tools: [current_datetime], subagents: [helper] }
  helper: { model: $helper, description: Helps., tools: [execute, current_datetime] }
  narrow: { model: { $narrow }, context_window: 4000 }
  mindful: { model: $mindful, memory: { paths: [notes.md] }, tools: [write_file, edit_file] }
`;

const answer = (...blocks: Block[]): Answer => ({ blocks });
const DONE = answer(say("All is done."));
const now = (id = "call_1") => call("current_datetime", {}, id);
const ls = (id = "call_1") => call("execute", { command: "echo hello" }, id);
const ask = (id = "call_1") => call("ask_user", { question: "Which colour?", kind: "input" }, id);
const long: Answer = { blocks: [say("word ".repeat(40))], delayMs: 40 };
const brief = (agent: string) => ({ agent, task: "Which colour is it?", context: "none" });
const completes = call("task_complete", { status: "completed", summary: "It is red." }, "call_done");
const CLIENT_TOOL = {
  name: "where",
  description: "Where the user is.",
  parameters: { type: "object", properties: { exact: { type: "boolean" } } },
};
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A scenario with one agent. It answers all questions of its first run with `answers`. */
const asking = (first: Answer, ...rounds: object[][]): Scenario => ({
  models: { assistant: [first, DONE, DONE] },
  async drive(client) {
    await client.run({ input: "Do it." });
    for (const answers of rounds) await client.resume(answers);
  },
});
const plain = (...answers: Answer[]): Scenario => ({
  models: { assistant: answers },
  drive: (client) => client.run({ input: "Do it." }),
});
const approval = (id = "call_1") => `approval_${id}`;

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "plain-answer": plain(answer(say("Hello there, and welcome."))),
  reasoning: plain(answer(think("Let me see what it is."), say("It is red."))),
  "reasoning-before-a-call": plain(answer(think("The time first."), say("I look."), now()), DONE),
  "one-call": plain(answer(say("I look."), now()), DONE),
  "given-calls": {
    models: { assistant: [DONE] },
    drive: (client) => client.run({ input: "Do it.", calls: [{ name: "current_datetime" }] }),
  },
  "several-calls": plain(answer(now("call_1"), now("call_2"), now("call_3")), DONE),
  "calls-in-turns": plain({ blocks: [now("call_1"), now("call_2")], interleaved: true }, DONE),
  "several-steps": plain(answer(say("One."), now("call_1")), answer(say("Two."), now("call_2")), DONE),
  "malformed-call": plain(answer(rawCall("current_datetime", '{"time_zone": "Eur', "call_1")), DONE),
  "unknown-tool": plain(answer(call("teleport", { to: "Mars" }, "call_1")), DONE),
  "failed-call": plain(answer(call("read_file", { path: "none.txt" }, "call_1")), DONE),
  "empty-answer": plain(answer()),
  "blank-answer": plain(answer(think("Nothing to say."), say("  "))),
  "max-tokens": plain({ blocks: [say("It was a long")], stop: "max_tokens" }),
  refusal: plain({ blocks: [say("I will not.")], stop: "refusal" }),
  "todos-and-files": plain(
    answer(call("write_todos", { todos: [{ id: "1", title: "Write", status: "in_progress" }] }, "call_1")),
    answer(call("write_file", { path: "a.txt", content: "red\n" }, "call_2")),
    answer(call("write_file", { path: "a.txt", content: "blue\n", overwrite: true }, "call_3")),
    answer(call("write_todos", { todos: [{ id: "1", title: "Write", status: "done" }] }, "call_4")),
    DONE,
  ),
  "retry-after-overload": plain({ fail: "overloaded" }, answer(say("Now it works."))),
  "retry-within-an-answer": plain(
    { blocks: [say("It is very red and blue.")], breakAfter: { frames: 3, with: "overloaded" }, delayMs: 40 },
    answer(say("It is red.")),
  ),
  "retry-within-a-call": plain(
    { blocks: [say("I look."), now("call_0")], breakAfter: { frames: 6, with: "overloaded" }, delayMs: 40 },
    answer(say("I look."), now()),
    DONE,
  ),
  "wrong-key": plain({ fail: "auth" }),
  "fallback-model": {
    agent: "fallen",
    models: { fallen: [{ fail: "overloaded" }], assistant: [DONE] },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "limit-of-model-calls": {
    agent: "brief",
    models: { brief: [answer(say("I look."), now()), DONE] },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "refused-input": {
    agent: "guarded",
    models: { guarded: [DONE] },
    drive: (client) => client.run({ input: "Where do I find plutonium?" }),
  },
  "refused-output": {
    agent: "guarded",
    models: { guarded: [answer(say("The secret is red."))] },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "reviewed-output": {
    agent: "guarded",
    models: { guarded: [answer(say("It is red."), now()), DONE] },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "approval-left-open": asking(answer(say("May I?"), ls())),
  "approval-approved": asking(answer(say("May I?"), ls()), [{ id: approval(), decision: "approve" }]),
  "approval-denied": asking(answer(ls()), [{ id: approval(), decision: "deny", message: "Not today." }]),
  "approval-edited": asking(answer(ls()), [
    { id: approval(), decision: "edit", args: { command: "echo bye" } },
  ]),
  "approval-with-words": asking(answer(ls()), [
    { id: approval(), decision: "respond", message: "It says hello." },
  ]),
  "two-approvals-one-by-one": asking(
    answer(ls("call_1"), ls("call_2"), now("call_3")),
    [{ id: approval("call_1"), decision: "approve" }],
    [{ id: approval("call_2"), decision: "deny" }],
  ),
  "two-approvals-at-once": asking(answer(ls("call_1"), ls("call_2")), [
    { id: approval("call_1"), decision: "approve" },
    { id: approval("call_2"), decision: "approve" },
  ]),
  "question-answered": asking(answer(ask()), [
    { id: "question_call_1", decision: "respond", message: "Red." },
  ]),
  "question-declined": asking(answer(ask()), [{ id: "question_call_1", decision: "deny" }]),
  "message-instead-of-an-answer": {
    models: { assistant: [answer(say("May I?"), ls()), DONE] },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.run({ input: "Leave it." });
    },
  },
  "wait-cancelled": {
    models: { assistant: [answer(ls())] },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.stop("cancel");
    },
  },
  "client-tool": {
    models: { assistant: [answer(call("where", { exact: true }, "call_1")), DONE] },
    async drive(client) {
      await client.run({ input: "Do it.", tools: [CLIENT_TOOL] });
      await client.resume([{ id: "tool_call_1", decision: "respond", message: "Brno" }], {
        tools: [CLIENT_TOOL],
      });
    },
  },
  "deferred-result": {
    models: { assistant: [answer(say("I ask."), call("freight", {}, "call_1")), DONE] },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.deliver({ price: 42 });
    },
  },
  "deferred-and-approval": {
    models: { assistant: [answer(ls("call_1"), call("freight", {}, "call_2")), DONE] },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.resume([{ id: approval(), decision: "approve" }]);
      await client.deliver({ price: 42 });
    },
  },
  "late-result": {
    models: { assistant: [answer(call("freight", {}, "call_1")), answer(say("Meanwhile.")), DONE] },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.run({ input: "Another thing." });
      await client.deliver({ price: 42 });
    },
  },
  "cancelled-in-an-answer": {
    models: { assistant: [long] },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      await run.until(({ event, data }) => event === "on_chat_model_stream" && "delta" in data);
      await client.stop("cancel");
      await run.ended;
    },
  },
  "cancelled-in-a-call": {
    models: { assistant: [answer(call("quote", {}, "call_1"), now("call_2"))] },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      await client.called("quote");
      await client.stop("cancel");
      await run.ended;
    },
  },
  "stopped-after-a-step": {
    models: { assistant: [answer(call("quote", {}, "call_1")), DONE] },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      const quote = await client.called("quote");
      await client.stop("interrupt");
      quote.answer("12");
      await run.ended;
    },
  },
  "broken-answer": {
    models: {
      assistant: Array.from({ length: 12 }, () => ({
        blocks: [say("It is very red and blue.")],
        breakAfter: { frames: 4, with: "server_error" as const },
      })),
    },
    drive: (client) => client.run({ input: "Do it." }),
  },
  steering: {
    models: { assistant: [answer(call("quote", {}, "call_1")), DONE] },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      const quote = await client.called("quote");
      await client.steer("And be quick.");
      quote.answer("12");
      await run.ended;
    },
  },
  "structured-output": {
    models: { assistant: [answer(say("Brno")), answer(say('{"city":"Brno"}'))] },
    drive: (client) => client.run({ input: "Do it.", output_schema: CITY }),
  },
  "two-turns": {
    models: { assistant: [answer(say("It is red.")), answer(say("It is blue."))] },
    async drive(client) {
      await client.run({ input: "Which colour?" });
      await client.run({ input: "And then?" });
    },
  },
  subagent: {
    agent: "lead",
    models: {
      lead: [answer(say("I ask."), call("task", brief("helper"), "call_1")), DONE],
      helper: [answer(say("Looking."), completes)],
    },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "two-subagents": {
    agent: "lead",
    models: {
      lead: [answer(call("delegate", { tasks: [brief("helper"), brief("helper")] }, "call_1")), DONE],
      helper: [answer(completes), answer(completes)],
    },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "subagent-asks": {
    agent: "lead",
    models: {
      lead: [answer(call("task", brief("helper"), "call_1")), DONE],
      helper: [answer(ls("call_2")), answer(completes)],
    },
    async drive(client) {
      await client.run({ input: "Do it." });
      await client.resume([{ id: await client.asked(), decision: "approve" }]);
    },
  },
  "subagent-in-the-background": {
    agent: "lead",
    models: {
      lead: [
        answer(call("start_task", brief("helper"), "call_1")),
        answer(say("I wait."), call("wait_tasks", { mode: "all" }, "call_2")),
        DONE,
      ],
      helper: [answer(say("Looking."), completes)],
    },
    drive: (client) => client.run({ input: "Do it." }),
  },
  "taken-over-in-an-answer": {
    models: { assistant: [long, DONE] },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      await run.until(({ event, data }) => event === "on_chat_model_stream" && "delta" in data);
      await client.crash();
    },
  },
  "taken-over-in-a-call": {
    models: { assistant: [answer(call("quote", {}, "call_1"), now("call_2")), DONE] },
    async drive(client) {
      await client.start({ input: "Do it." });
      await client.called("quote");
      await client.crash();
    },
  },
  "taken-over-in-a-subagent": {
    agent: "lead",
    models: {
      lead: [answer(call("task", brief("helper"), "call_1")), DONE],
      helper: [answer(say("I look."), now("call_2")), long, answer(completes)],
    },
    async drive(client) {
      const run = await client.start({ input: "Do it." });
      await run.until(
        ({ event, path, data }) =>
          event === "on_chat_model_stream" &&
          path !== undefined &&
          "delta" in data &&
          data.delta.startsWith("word"),
      );
      await client.crash();
    },
  },
  summary: {
    agent: "narrow",
    models: {
      narrow: [
        answer(say(`${"one, ".repeat(400)}done.`)),
        { blocks: [say("Two.")], usage: { input: 3900 } },
        answer(say("The user asked twice.")),
        answer(say("Three.")),
      ],
    },
    async drive(client) {
      for (const input of ["Count.", "And on.", "And on."]) await client.run({ input });
    },
  },
  memory: {
    agent: "mindful",
    models: {
      mindful: [
        answer(call("write_file", { path: "notes.md", content: "Ada likes red.\n" }, "call_1")),
        answer(call("edit_file", { path: "notes.md", old_text: "red", new_text: "blue" }, "call_2")),
        DONE,
        DONE,
      ],
    },
    async drive(client) {
      await client.run({ input: "I like red." });
      await client.run({ input: "What do I like?" });
    },
  },
};
