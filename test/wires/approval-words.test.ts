import { expect, test } from "vitest";
import { decisionIn } from "../../src/protocol/approval-words.ts";
import type { Answer, Interrupt } from "../../src/protocol/interrupt.ts";
import { answersTo } from "../../src/skein/cli/answering.ts";
import { responsesIn as a2aAnswers, type SentMessage } from "../../src/wires/a2a/input.ts";
import { responsesIn as aguiAnswers, RunAgentInput } from "../../src/wires/ag-ui/input.ts";
import { answersOf } from "../../src/wires/langgraph/resume.ts";
import { answerIn } from "../../src/wires/mcp/elicitation.ts";
import { AnswerQuestion } from "../../src/wires/mcp/input.ts";
import { answersInWords } from "../../src/wires/words.ts";

const approval: Interrupt = {
  id: "approval_1",
  kind: "approval",
  call_id: "call_1",
  run_id: "run_1",
  name: "execute",
  args: { command: "ls" },
  prompt: "Run ls?",
  created_at: "2026-01-01T00:00:00.000Z",
};
const connect: Interrupt = { ...approval, kind: "connect", prompt: "Connect your account." };

const resumed = (payload: unknown) =>
  RunAgentInput.parse({
    threadId: "t",
    runId: "r",
    resume: [{ interruptId: approval.id, status: "resolved", payload }],
  });
const messageOf = (text: string): SentMessage => ({ messageId: "m", parts: [{ text }] });

type Said = Pick<Answer, "decision" | "message"> | undefined;
type Wire = readonly [name: string, read: (said: string, asked: Interrupt) => Said | Promise<Said>];

const WIRES: readonly Wire[] = [
  [
    "a message of chat completions, AI SDK 5 and AG-UI 0.0.51",
    (said, asked) => answersInWords(said, [asked])[0],
  ],
  ["`resume` of AG-UI", (said, asked) => aguiAnswers(resumed(said), [asked])[0]],
  ["`command.resume` of LangGraph", (said, asked) => answersOf(said, [asked])[0]],
  ["a message to a task of A2A", (said, asked) => a2aAnswers(messageOf(said), [asked])[0]],
  ["`answer` of MCP", (decision) => AnswerQuestion.parse({ thread_id: "thread_1", decision })],
  ["a form of MCP", (decision, asked) => answerIn({ action: "accept", content: { decision } }, asked)],
  [
    "the terminal",
    async (said, asked) =>
      (await answersTo([asked], { ask: async () => said, paint: (_, text) => text }))?.[0],
  ],
];

const WORDS = {
  approve: ["approve", "approved", "accept", "accepted", "yes", "y", "ok", "okay", "true"],
  deny: ["deny", "denied", "reject", "rejected", "no", "n", "false"],
} as const;

const written = (word: string) => [
  word,
  word.toUpperCase(),
  `${word[0]?.toUpperCase()}${word.slice(1)}`,
  ` ${word}\n`,
  `${word}.`,
  `${word}!`,
];

const ASKED = [approval, connect].flatMap((asked) =>
  WIRES.map(([name, read]) => [asked.kind, name, read, asked] as const),
);

test.each(ASKED)(
  "words decide an interrupt of kind %s, in any case and with a full stop: %s",
  async (_kind, _, read, asked) => {
    for (const [decision, words] of Object.entries(WORDS))
      for (const said of words.flatMap(written)) {
        const answer = await read(said, asked);
        expect({ said, decision: answer?.decision, message: answer?.message }).toEqual({
          said,
          decision,
          message: undefined,
        });
      }
  },
);

test("true and false decide where an answer is JSON", () => {
  for (const [said, decision] of [
    [true, "approve"],
    [false, "deny"],
  ] as const) {
    expect(answersOf(said, [approval])[0]?.decision).toBe(decision);
    expect(aguiAnswers(resumed(said), [approval])[0]?.decision).toBe(decision);
    expect(answerIn({ action: "accept", content: { decision: said } }, approval).decision).toBe(decision);
  }
});

test.each([approval, connect])("an answer with `approved` decides an interrupt of kind $kind", (asked) => {
  for (const [approved, decision] of [
    [true, "approve"],
    [false, "deny"],
  ] as const) {
    const data = { messageId: "m", parts: [{ data: { approved } }] };
    expect(a2aAnswers(data, [asked])).toEqual([{ id: asked.id, decision }]);
    expect(aguiAnswers(resumed({ approved }), [asked])).toEqual([{ id: asked.id, decision }]);
  }
});

test("text that only begins like an approval word approves nowhere", async () => {
  for (const said of ["yes, but not now", "ok?", "no way", "approve not", "truely", "", "1", "constructor"]) {
    expect(decisionIn(said)).toBeUndefined();
    for (const [, read] of WIRES) {
      const answer = await Promise.resolve(said)
        .then((text) => read(text, approval))
        .catch(() => undefined);
      expect(answer?.decision ?? "none").not.toBe("approve");
    }
  }
});
