import { describe, expect, test } from "vitest";
import { toolMessages } from "../../../src/core/message.ts";
import { askUser } from "../../../src/tools/native/ask-user.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";

const asked = async (args: object) => {
  const script = [{ call: [{ tool: "ask_user", args: { question: "Which?", ...args } }] }, { say: "ok" }];
  const { events, messages, outcome } = await play({ script, tools: [askUser] });
  return { questions: dataOf(events, "on_interrupt"), error: toolMessages(messages)[0]?.error, outcome };
};

describe("a question of the agent", () => {
  test.each(["select", "multi_select"])("of kind %s needs at least two options", async (kind) => {
    for (const options of [[], ["this one"]]) {
      const { questions, error, outcome } = await asked({ kind, options });
      expect(error).toContain(`\`${kind}\` needs at least two options`);
      expect(questions).toEqual([]);
      expect(outcome.status).toBe("success");
    }
    const { questions, outcome } = await asked({ kind, options: ["this", "that"] });
    expect(questions).toMatchObject([{ kind: "question", prompt: "Which?", options: ["this", "that"] }]);
    expect(outcome.status).toBe("interrupted");
  });

  test("that is answered with yes or no offers these", async () => {
    expect((await asked({ kind: "confirm" })).questions).toMatchObject([{ options: ["yes", "no"] }]);
  });

  test("that is answered with a text offers nothing to choose from", async () => {
    expect((await asked({})).questions[0]).not.toHaveProperty("options");
  });
});
