import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assistantMessage, type Message, toolMessage, userMessage } from "../../../src/agent/core/message.ts";
import { createModel } from "../../../src/agent/models/index.ts";
import { deepFreeze } from "../../../src/lib/json.ts";
import { collectGarbage } from "../../support/garbage.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

const system = [{ id: "who", text: "You are Skein.", cache: "static" }] as const;
const long = "A long story. ".repeat(3000);

const text = fc.constantFrom("hello", "a \ud83d", "漢字", '{"x": 1}', long);
const mayBeBlank = fc.oneof(text, fc.constantFrom("", " \n"));
const call = fc.record({
  id: fc.constantFrom("a", "b", "call 1", "", "x".repeat(40)),
  name: fc.constantFrom("read", "no.such tool"),
  args: fc.constantFrom({}, { path: "/x" }),
});

/** An assistant's message with calls, and their results, of which some may be missing or come twice. */
const Step = fc
  .tuple(mayBeBlank, fc.array(call, { minLength: 1, maxLength: 3 }), fc.constantFrom(1, 1, 1, 1, 0, 2))
  .map(([said, calls, times]): Message[] => [
    { ...assistantMessage(said, ...calls), model: "openai:gpt-5-mini", reasoning: [{ text: "Hm." }] },
    ...calls.flatMap((each) => Array.from({ length: times }, () => toolMessage(each, "done"))),
  ]);
const Turn = fc
  .tuple(fc.oneof(text, mayBeBlank), fc.array(Step, { maxLength: 2 }), mayBeBlank)
  .map(([asked, steps, answer]): Message[] => [
    userMessage(asked),
    ...steps.flat(),
    assistantMessage(answer),
  ]);
/** What is taken back of a thread before its next turn, in messages. */
const Thread = fc.array(fc.tuple(Turn, fc.constantFrom(0, 0, 0, 1, 3)), { minLength: 2, maxLength: 8 });

const KIB = 1024;

const longThread = (length: number) =>
  [userMessage("x".repeat(length)), assistantMessage("Yes."), userMessage("And?")].map((each) =>
    deepFreeze(each),
  );

/** A long thread that tells how often the arguments of its call were written. */
function countedThread() {
  let times = 0;
  const args = {
    get path() {
      times++;
      return "/x";
    },
  };
  const made = { id: "a", name: "read", args };
  const turns = [userMessage("x".repeat(64 * KIB)), assistantMessage("", made), toolMessage(made, "done")];
  const all = [...turns, assistantMessage("Yes."), userMessage("And?")];
  return { messages: all.map((each) => deepFreeze(each)), timesWritten: () => times };
}

const openai = () =>
  createModel(
    { provider: "openai", model: "gpt-5-mini", api_key: "k", base_url: `${fake.current.url}/v1` },
    {},
  );

describe.each(PROTOCOLS)("a long thread, sent to $name turn by turn", ({ model }) => {
  test("is the same as if all of it were written each time, even after a rewind", async () => {
    const asked = model(fake.current);
    const sent = async (messages: readonly Message[]) => {
      await ask(asked, { messages, system });
      return JSON.stringify(lastBody(fake.current));
    };
    await fc.assert(
      fc.asyncProperty(Thread, async (turns) => {
        const messages: Message[] = [
          deepFreeze(userMessage(long)),
          deepFreeze(assistantMessage("Tell me more.")),
        ];
        for (const [turn, takenBack] of turns) {
          messages.splice(Math.max(2, messages.length - takenBack));
          messages.push(...turn.map((message) => deepFreeze(message)));
          // What is not frozen is written each time.
          expect(await sent([...messages, userMessage("And?")])).toBe(
            await sent([...structuredClone(messages), userMessage("And?")]),
          );
        }
      }),
      { numRuns: 8 },
    );
  });

  test("includes a message that its owner has changed in the meantime", async () => {
    const asked = model(fake.current);
    const owned = assistantMessage("Once.");
    const messages = [deepFreeze(userMessage(long)), owned, deepFreeze(userMessage("And?"))];
    await ask(asked, { messages });
    owned.content = "Twice.";
    await ask(asked, { messages });
    expect(JSON.stringify(lastBody(fake.current))).toContain("Twice.");
  });
});

test("a tenant's thread is serialized once, however much of other threads is sent in the meantime", async () => {
  const asked = openai();
  const { messages, timesWritten } = countedThread();
  await ask(asked, { messages, tenant: "quiet" });
  const once = timesWritten();
  const loud: Message[][] = [];
  for (let n = 0; n < 28; n++) {
    loud.push(longThread(1536 * KIB));
    await ask(asked, { messages: loud.at(-1) ?? [], tenant: `loud ${n % 2}` });
  }
  await ask(asked, { messages: [...messages, userMessage("And?")], tenant: "quiet" });
  expect(timesWritten()).toBe(once);
});

test("the serialized form of a thread is released with the thread", async () => {
  const asked = openai();
  const sent = async () => {
    const messages = longThread(64 * KIB);
    await ask(asked, { messages });
    return new WeakRef(messages[0] ?? {});
  };
  const first = await sent();
  await turn();
  collectGarbage();
  expect(first.deref()).toBeUndefined();
});
