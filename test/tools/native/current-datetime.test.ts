import { expect, test } from "vitest";
import { currentDatetime } from "../../../src/tools/native/current-datetime.ts";
import { play } from "../../support/agent.ts";

async function asked(args: Record<string, unknown>) {
  const script = [{ call: [{ tool: "current_datetime", args }] }, { say: "ok" }];
  const { messages } = await play({ script, tools: [currentDatetime] });
  const result = messages.find((message) => message.role === "tool");
  if (!result) throw new Error("The call has no result.");
  return result;
}

test("an agent can ask what time it is, here and elsewhere", async () => {
  const before = Date.now();
  const { utc, there } = JSON.parse(String((await asked({ time_zone: "Asia/Kolkata" })).content));
  expect(Date.parse(utc)).toBeGreaterThanOrEqual(before);
  expect(Date.parse(utc)).toBeLessThanOrEqual(Date.now());
  expect(there).toMatch(/^\w+day,? \d+ \w+ \d{4} at \d\d:\d\d:\d\d GMT\+5:30$/);
});

test("an unknown time zone is an error with an example", async () => {
  expect(await asked({ time_zone: "Mars/Olympus" })).toMatchObject({
    error: "There is no time zone `Mars/Olympus`. Use an IANA name such as Europe/Berlin.",
  });
});
