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

const resumed = (payload: unknown) =>
  RunAgentInput.parse({
    threadId: "t",
    runId: "r",
    resume: [{ interruptId: approval.id, status: "resolved", payload }],
  });
const messageOf = (text: string): SentMessage => ({ messageId: "m", parts: [{ text }] });

type Said = Pick<Answer, "decision" | "message"> | undefined;
type Wire = readonly [name: string, read: (said: string) => Said | Promise<Said>];

const WIRES: readonly Wire[] = [
  ["a message of chat completions, AI SDK 5 and AG-UI 0.0.51", (said) => answersInWords(said, [approval])[0]],
  ["`resume` of AG-UI", (said) => aguiAnswers(resumed(said), [approval])[0]],
  ["`command.resume` of LangGraph", (said) => answersOf(said, [approval])[0]],
  ["a message to a task of A2A", (said) => a2aAnswers(messageOf(said), [approval])[0]],
  ["`answer` of MCP", (decision) => AnswerQuestion.parse({ thread_id: "thread_1", decision })],
  ["a form of MCP", (decision) => answerIn({ action: "accept", content: { decision } }, approval)],
  [
    "the terminal",
    async (said) => (await answersTo([approval], { ask: async () => said, paint: (_, text) => text }))?.[0],
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

test.each(WIRES)("approval words decide, in any case and with a full stop: %s", async (_, read) => {
  for (const [decision, words] of Object.entries(WORDS))
    for (const said of words.flatMap(written)) {
      const answer = await read(said);
      expect({ said, decision: answer?.decision, message: answer?.message }).toEqual({
        said,
        decision,
        message: undefined,
      });
    }
});

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

test("text that only begins like an approval word approves nowhere", async () => {
  for (const said of ["yes, but not now", "ok?", "no way", "approve not", "truely", "", "1", "constructor"]) {
    expect(decisionIn(said)).toBeUndefined();
    for (const [, read] of WIRES) {
      const answer = await Promise.resolve(said)
        .then(read)
        .catch(() => undefined);
      expect(answer?.decision ?? "none").not.toBe("approve");
    }
  }
});
