import { describe, expect, test } from "vitest";
import { toolMessages } from "../../../src/agent/core/message.ts";
import { askUser, currentDatetime } from "../../../src/agent/tools/native.ts";
import { scheduleTools } from "../../../src/agent/tools/schedules.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { worker } from "../hooks/family.ts";

const question = async (args: object) => {
  const script = [{ call: [{ tool: "ask_user", args: { question: "Which?", ...args } }] }, { say: "ok" }];
  const { events, messages, outcome } = await play({ script, tools: [askUser] });
  return { questions: dataOf(events, "on_interrupt"), error: toolMessages(messages)[0]?.error, outcome };
};

describe("a question of the agent", () => {
  test.each(["select", "multi_select"])("of kind %s needs at least two options", async (kind) => {
    for (const options of [[], ["this one"]]) {
      const { questions, error, outcome } = await question({ kind, options });
      expect(error).toContain(`\`${kind}\` needs at least two options`);
      expect(questions).toEqual([]);
      expect(outcome.status).toBe("success");
    }
    const { questions, outcome } = await question({ kind, options: ["this", "that"] });
    expect(questions).toMatchObject([{ kind: "question", prompt: "Which?", options: ["this", "that"] }]);
    expect(outcome.status).toBe("interrupted");
  });

  test("that is answered with yes or no offers these two", async () => {
    expect((await question({ kind: "confirm" })).questions).toMatchObject([{ options: ["yes", "no"] }]);
  });

  test("that is answered with text offers only the options that it has", async () => {
    expect((await question({})).questions[0]).not.toHaveProperty("options");
    expect((await question({ options: ["this"] })).questions).toMatchObject([{ options: ["this"] }]);
  });
});

async function time(args: Record<string, unknown>) {
  const script = [{ call: [{ tool: "current_datetime", args }] }, { say: "ok" }];
  const { messages } = await play({ script, tools: [currentDatetime] });
  return toolMessages(messages)[0];
}

test("an agent can ask for the current time, locally and elsewhere", async () => {
  const before = Date.now();
  const { utc, there } = JSON.parse(String((await time({ time_zone: "Asia/Kolkata" }))?.content));
  expect(Date.parse(utc)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(utc)).toBeLessThanOrEqual(Date.now());
  expect(there).toMatch(/^\w+day,? \d+ \w+ \d{4} at \d\d:\d\d:\d\d GMT\+5:30$/);
});

test("an unknown time zone is an error with an example", async () => {
  expect(await time({ time_zone: "Mars/Olympus" })).toMatchObject({
    error: "There is no time zone `Mars/Olympus`. Use an IANA name such as Europe/Berlin.",
  });
});

test("a subagent cannot schedule runs in its user's conversation", async () => {
  const tools = scheduleTools(() => expect.fail("No schedule is created."));
  const args = { cron: "0 9 * * *", input: "Look.", thread: "this" };
  const script = [{ call: [{ tool: "schedule_create", args }] }, { say: "ok" }];
  const { messages } = await play({ script, tools, input: worker("coder-1") });
  expect(toolMessages(messages)[0]?.error).toContain("cannot continue the user's conversation");
});
