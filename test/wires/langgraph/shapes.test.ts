// Our messages, questions and threads as LangChain's clients know them, and their answers as ours.

import { describe, expect, test } from "vitest";
import { conversation, type Message } from "../../../src/agent/core/message.ts";
import type { Thread } from "../../../src/agent/core/records.ts";
import type { Interrupt } from "../../../src/protocol/interrupt.ts";
import { interruptsOf, messageShape, stateShape, valuesOf } from "../../../src/wires/langgraph/history.ts";
import {
  checkpointBefore,
  checkpointOf,
  checkpointsOf,
  headOf,
  stepOf,
} from "../../../src/wires/langgraph/resources/checkpoints.ts";
import { historyOf, stateText } from "../../../src/wires/langgraph/resources/states.ts";
import { answersOf } from "../../../src/wires/langgraph/resume.ts";

const interrupt = (id: string, more: Partial<Interrupt> = {}): Interrupt => ({
  id,
  kind: "approval",
  call_id: `call_${id}`,
  run_id: "run_1",
  name: "execute",
  args: { command: "ls" },
  prompt: "May it?",
  created_at: "2026-11-22T00:00:00.000Z",
  ...more,
});
const question = (id: string) =>
  interrupt(id, { kind: "question", name: "ask_user", prompt: "Which?", options: ["red", "blue"] });
const tool = (id: string) => interrupt(id, { kind: "tool", name: "where", args: { near: true } });

describe("a message", () => {
  const said = (message: Message | undefined) => (message ? messageShape(message) : undefined);

  test("keeps its id, and text remains text", () => {
    const [message] = conversation().user("hi").messages;
    expect(said(message)).toEqual({
      type: "human",
      id: message?.id,
      content: "hi",
      additional_kwargs: {},
      response_metadata: {},
    });
  });

  test("that delegates names the subagent in the form that front ends expect", () => {
    const call = { id: "c1", name: "task", args: { agent: "coder", task: "Write it", context: "-" } };
    expect(said(conversation().assistant("", call).messages[0])?.tool_calls?.[0]?.args).toEqual({
      ...call.args,
      subagent_type: "coder",
      description: "Write it",
    });
  });

  test("of a tool reports whether it failed", () => {
    const tools = conversation().tool("c1", "ls", "a.txt").tool("c2", "ls", "gone", "gone").messages;
    expect(tools.map((message) => messageShape(message).status)).toEqual(["success", "error"]);
  });

  test("with a file has its bytes under the names that older and newer clients read", () => {
    const file = { type: "file", media_type: "text/plain", data: "aGk=", name: "a.txt" } as const;
    expect(said(conversation().user([file]).messages[0])?.content).toEqual([
      {
        ...{ type: "file", source_type: "base64", mime_type: "text/plain", mimeType: "text/plain" },
        ...{ data: "aGk=", metadata: { name: "a.txt", filename: "a.txt" } },
      },
    ]);
  });
});

test("only todos and files of the state are shown, with the size of a file that is not kept", () => {
  const state = {
    todos: [{ id: "1", title: "Write", status: "done" }],
    files: { "/a.txt": { bytes: 2, content: "hi" }, "/b.bin": { bytes: 20_000 } },
    interrupts: { x: {} },
  };
  const shown = {
    todos: [{ id: "1", content: "Write", status: "completed" }],
    files: { "/a.txt": "hi", "/b.bin": "[20000 bytes]" },
  };
  expect(stateShape(state)).toEqual(shown);
  expect(valuesOf([], state)).toEqual({ messages: [], ...shown });
});

describe("interrupts", () => {
  test("for people form one, and the front end's tools one each, with constant ids", () => {
    const open = [interrupt("a"), question("b"), tool("c")];
    const [people, front, ...none] = interruptsOf(open);
    expect(none).toEqual([]);
    expect(people?.value).toMatchObject({
      action_requests: [
        { name: "execute", args: { command: "ls" }, description: "May it?" },
        { name: "ask_user", args: { options: ["red", "blue"], answer: "" }, description: "Which?" },
      ],
      review_configs: [
        { action_name: "execute", allowed_decisions: ["approve", "edit", "reject", "respond"] },
        { action_name: "ask_user", allowed_decisions: ["respond", "edit", "reject"] },
      ],
    });
    expect(front?.value).toEqual({
      type: "tool",
      tool_call: { id: "call_c", name: "where", args: { near: true } },
    });
    expect(interruptsOf(open)).toEqual([people, front]);
    expect(interruptsOf([interrupt("a")])[0]?.id).not.toBe(people?.id);
  });

  const open = [interrupt("a"), question("b")];
  const id = interruptsOf(open)[0]?.id ?? "";
  const edited = { name: "execute", args: { command: "pwd" } };
  test.each([
    ["decisions, by position", { decisions: [{ type: "approve" }, { type: "respond", message: "Red" }] }],
    [
      "decisions under the interrupt's id",
      { [id]: { decisions: [{ type: "approve" }, { type: "respond", message: "red" }] } },
    ],
    [
      "a list of the older form",
      [
        { type: "accept", args: null },
        { type: "response", args: "red" },
      ],
    ],
  ])("are answered by %s", (_, resume) => {
    expect(answersOf(resume, open)).toEqual([
      { id: "a", decision: "approve" },
      { id: "b", decision: "respond", message: "red" },
    ]);
  });

  test.each([
    [
      { decisions: [{ type: "edit", edited_action: edited }] },
      { decision: "edit", args: { command: "pwd" } },
    ],
    [{ decisions: [{ type: "edit", editedAction: edited }] }, { decision: "edit", args: { command: "pwd" } }],
    [
      [{ type: "edit", args: { action: "execute", args: { command: "pwd" } } }],
      { decision: "edit", args: { command: "pwd" } },
    ],
    [{ decisions: [{ type: "reject", message: "No." }] }, { decision: "deny", message: "No." }],
    [[{ type: "ignore", args: null }], { decision: "deny" }],
    ["yes", { decision: "approve" }],
    [true, { decision: "approve" }],
    ["no", { decision: "deny" }],
    ["Not today.", { decision: "deny", message: "Not today." }],
  ])("an approval accepts %j", (resume, answer) => {
    expect(answersOf(resume, [interrupt("a")])).toEqual([{ id: "a", ...answer }]);
  });

  const answer = (text: unknown) => ({ name: "ask_user", args: { question: "Which?", answer: text } });
  test.each([
    ["the form for arguments", { decisions: [{ type: "edit", edited_action: answer("Red") }] }, "red"],
    ["a value in that form", { decisions: [{ type: "edit", edited_action: answer([1]) }] }, "[1]"],
    [
      "the form of Agent Inbox",
      { decisions: [{ type: "edit", args: { action: "ask_user", args: answer("green").args } }] },
      "green",
    ],
    ["a response in Agent Inbox", { decisions: [{ type: "reject", args: "Red" }] }, "red"],
    ["words of a page that can only reject", { decisions: [{ type: "reject", message: "red" }] }, "red"],
  ])("a question accepts %s", (_, resume, message) => {
    expect(answersOf(resume, [question("b")])).toEqual([{ id: "b", decision: "respond", message }]);
  });

  test("a question with one_of_options is denied by other text, and neither contains text", () => {
    const strict = interrupt("b", { ...question("b"), one_of_options: true });
    const reject = (message?: string) => ({ decisions: [{ type: "reject", message }] });
    expect(answersOf(reject("Neither."), [strict])).toEqual([
      { id: "b", decision: "deny", message: "Neither." },
    ]);
    expect(answersOf(reject("Blue"), [strict])).toEqual([{ id: "b", decision: "respond", message: "blue" }]);
    expect(answersOf(reject(), [question("b")])).toEqual([{ id: "b", decision: "deny" }]);
    expect(answersOf([{ type: "ignore", args: null }], [question("b")])).toEqual([
      { id: "b", decision: "deny" },
    ]);
  });

  test("a question accepts a text, and a shorter list in the older format leaves the rest open", () => {
    expect(answersOf("Blue", [question("b")])).toEqual([{ id: "b", decision: "respond", message: "blue" }]);
    expect(answersOf("blue", open)).toEqual([{ id: "b", decision: "respond", message: "blue" }]);
    expect(answersOf([{ type: "accept" }], open)).toEqual([{ id: "a", decision: "approve" }]);
  });

  test("tools of the front end accept their output, with the id of the call or without it", () => {
    const both = [interrupt("a"), tool("c")];
    const front = interruptsOf(both)[1]?.id ?? "";
    const result = { id: "c", decision: "respond", message: '{"city":"Vienna"}' };
    for (const resume of [{ [front]: { call_c: { city: "Vienna" } } }, { call_c: { city: "Vienna" } }])
      expect(answersOf(resume, both)).toEqual([result]);
    expect(answersOf({ city: "Vienna" }, [tool("c")])).toEqual([result]);
    expect(answersOf({ [front]: { call_c: { error: "no GPS" } } }, both)).toEqual([
      { id: "c", decision: "deny", message: "no GPS" },
    ]);
  });

  test.each([
    ["nothing is open", "yes", [], "interrupt_closed"],
    ["it names another", { ["0".repeat(32)]: "yes" }, [interrupt("a")], "interrupt_closed"],
    [
      "there are too many decisions",
      [{ type: "accept" }, { type: "accept" }],
      [interrupt("a")],
      "invalid_request",
    ],
    [
      "one decision comes for several requests, of which it may mean any",
      { decisions: [{ type: "approve" }] },
      [interrupt("a"), interrupt("b")],
      "invalid_request",
    ],
    [
      "it edits another request than the one at its place",
      { decisions: [{ type: "edit", edited_action: { name: "write_file", args: {} } }] },
      [interrupt("a")],
      "invalid_request",
    ],
    [
      "the form has no answer to the question",
      { decisions: [{ type: "edit", edited_action: answer("") }] },
      [question("b")],
      "invalid_request",
    ],
    ["it is no answer", { some: "thing" }, [interrupt("a")], "invalid_request"],
  ])("an answer is refused if %s", (_, resume, asked, code) => {
    expect(() => answersOf(resume, asked)).toThrow(expect.objectContaining({ code }));
  });
});

describe("checkpoints", () => {
  const { messages } = conversation().user("one").assistant("A").user("two").assistant("B");

  test("are before all messages, around each user message, and at the end", () => {
    expect(checkpointsOf(messages).map(({ count }) => count)).toEqual([0, 1, 2, 3, 4]);
    expect(checkpointsOf([]).map(({ id }) => id)).toEqual(["00000000-empty"]);
    expect(checkpointsOf(messages).at(-1)).toEqual(headOf(messages));
  });

  test("refer to the one before them", () => {
    const all = checkpointsOf(messages);
    expect(all.map(({ count }) => checkpointBefore(messages, count))).toEqual([
      undefined,
      ...all.slice(0, -1),
    ]);
    expect(checkpointBefore(messages.slice(0, 3), 3)).toEqual(all[2]);
  });

  test("of a history read each message only a few times, however many there are", () => {
    let looks = 0;
    const long = Array.from({ length: 500 }, (_, index) => ({
      ...(messages[index % 2] ?? expect.fail()),
      id: `m${index}`,
      get role() {
        looks++;
        return index % 2 === 0 ? "user" : "assistant";
      },
    })) as Message[];
    const thread = { id: "t", metadata: {}, status: "idle" } as Thread;
    const whole = { thread, messages: long, state: {}, open: [] };
    const texts = long.map(() => "{}");
    const places = historyOf(whole, texts, { limit: 1000 });
    expect(places).toHaveLength(501);
    for (const at of places) for (const _ of stateText(whole, texts, { at, select: ["metadata"] }));
    expect(looks).toBeLessThan(20 * long.length);
  });

  test("are found by their ids until the thread is rewound to an earlier one", () => {
    for (const checkpoint of checkpointsOf(messages))
      expect(checkpointOf(messages, checkpoint.id)).toEqual(checkpoint);
    const rewritten = conversation(messages.slice(0, 2)).user("other").messages;
    const found = checkpointsOf(messages).map(({ id }) => checkpointOf(rewritten, id)?.count);
    expect(found).toEqual([0, 1, 2, undefined, undefined]);
    for (const id of ["", "x", "99999999-x", `00000004-${messages[0]?.id}`])
      expect(checkpointOf(messages, id)).toBeUndefined();
  });

  test("have increasing steps", () => {
    const steps = checkpointsOf(messages).map((checkpoint) => stepOf(messages, checkpoint));
    expect(steps.toSorted((a, b) => a - b)).toEqual(steps);
  });
});
