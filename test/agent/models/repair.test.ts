import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  type Message,
  systemMessage,
  type ToolCall,
  toolMessage,
  userMessage,
} from "../../../src/agent/core/message.ts";
import { seedOr } from "../../support/seed.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const FIRST_SEED = seedOr(1);

const fake = fakeProvider();

const made = (id: string, name = "read", args: Record<string, unknown> = {}): ToolCall => ({
  id,
  name,
  args,
});
const a = made("call_a");
const hi = userMessage("hi");

/** Histories that no provider would take as they are, and that chance does not make. */
const MALFORMED: Readonly<Record<string, readonly Message[]>> = {
  "ids that a provider refuses": [
    ...[hi, assistantMessage("", made("call|1:ü"), made(""), made("x".repeat(99)), made("toolu_01.2"))],
    ...[
      toolMessage(made("call|1:ü"), "1"),
      toolMessage(made(""), "2"),
      toolMessage(made("x".repeat(99)), "3"),
    ],
  ],
  "a made-up id that is taken": [
    ...[hi, assistantMessage("", made("call:1"), made(digest("call:1#0")))],
    ...[toolMessage(made("call:1"), "1"), toolMessage(made(digest("call:1#0")), "2")],
  ],
  "names that no tool can have": [
    hi,
    assistantMessage("", made("c1", "files.read now!"), made("c2", ""), made("c3", "x".repeat(200))),
  ],
};

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 9);
}

describe.each(PROTOCOLS)("$name", ({ family, model }) => {
  test.each(Object.keys(MALFORMED))("accepts a history with %s", async (what) => {
    const { reply } = await ask(model(fake.current), { messages: MALFORMED[what] ?? [] });
    expect(reply.content).toBe("ok");
  });

  const sent = async (messages: readonly Message[]) => {
    await ask(model(fake.current), { messages });
    return JSON.stringify(lastBody(fake.current).messages);
  };

  test("reports that a call has no result", async () => {
    expect(await sent([hi, assistantMessage("", a)])).toContain("No result was recorded.");
  });

  test("keeps the first of two results", async () => {
    const text = await sent([hi, assistantMessage("", a), toolMessage(a, "first"), toolMessage(a, "second")]);
    expect(text).toContain("first");
    expect(text).not.toContain("second");
  });

  test("assigns a repeated id's results to their calls", async () => {
    const text = await sent([
      ...[hi, assistantMessage("", a), toolMessage(a, "result one")],
      ...[userMessage("again"), assistantMessage("", a), toolMessage(a, "result two")],
    ]);
    const order = ["result one", "again", "result two"].map((part) => text.indexOf(part));
    expect(order).toEqual([...order].sort((x, y) => x - y));
    expect(order[0]).toBeGreaterThan(0);
  });

  test("assigns the results of identical ids in one message to its calls in order", async () => {
    const text = await sent([hi, assistantMessage("", a, a), toolMessage(a, "one"), toolMessage(a, "two")]);
    expect(text.indexOf('"one"')).toBeGreaterThan(0);
    expect(text.indexOf('"one"')).toBeLessThan(text.indexOf('"two"'));
  });

  test("assigns a result to the newest call with its id if an older one was never answered", async () => {
    const text = await sent([
      hi,
      assistantMessage("", a),
      hi,
      assistantMessage("", a),
      toolMessage(a, "done"),
    ]);
    expect(text.indexOf("No result was recorded.")).toBeLessThan(text.indexOf("done"));
  });

  test("moves a late result up to its call", async () => {
    const text = await sent([
      hi,
      assistantMessage("", a),
      userMessage("and now?"),
      toolMessage(a, "late but here"),
    ]);
    expect(text).not.toContain("No result");
    expect(text.indexOf("late but here")).toBeLessThan(text.indexOf("and now?"));
  });

  test("distinguishes an empty output from a missing one", async () => {
    expect(await sent([hi, assistantMessage("", a), toolMessage(a, "")])).toContain("(no output)");
  });

  test("asks for more after a final answer instead of repeating it", async () => {
    await ask(model(fake.current), { messages: [hi, assistantMessage("Once upon a")] });
    const [answer, last] = lastBody(fake.current).messages.slice(-2);
    expect(JSON.stringify(answer)).toContain("Once upon a");
    expect(last?.role).toBe("user");
    expect(JSON.stringify(last)).toContain("Continue.");
  });

  test("keeps the position of a system message", async () => {
    const text = await sent([hi, assistantMessage("yes?"), systemMessage("It is late."), userMessage("bye")]);
    const order = ["yes?", "It is late.", "bye"].map((part) => text.indexOf(part));
    expect(order).toEqual([...order].sort((x, y) => x - y));
    expect(text).toContain(
      family === "anthropic"
        ? "<system>\\nIt is late.\\n</system>"
        : '{"role":"system","content":"It is late."}',
    );
  });

  test("accepts any history", async () => {
    const asked = model(fake.current);
    for (let seed = FIRST_SEED; seed < FIRST_SEED + 300; seed++) {
      const messages = randomHistory(seed);
      await ask(asked, { messages }).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}\n${JSON.stringify(messages, null, 1)}`);
      });
      const first = JSON.stringify(lastBody(fake.current));
      expect(first).not.toMatch(/\\ud[89a-f]/i);
      if (seed % 10 > 0) continue;
      await ask(asked, { messages });
      expect(JSON.stringify(lastBody(fake.current))).toBe(first);
    }
  });
});

/** A history without any order in it; the same one for the same seed. */
function randomHistory(seed: number): Message[] {
  let state = seed * 2654435761;
  const below = (limit: number) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) % limit;
  };
  const pick = <T>(...items: readonly T[]): T => items[below(items.length)] as T; // there is at least one
  const text = () => pick("", " ", "hello", "\n\n", "a \ud83d", "漢字", '{"x": 1}', "</system>");
  const call = (): ToolCall => ({
    ...made(pick("a", "b", "c", "call 1", "", "ü", "x".repeat(40)), pick("read", "no.such tool", "")),
    args: pick({}, { path: "/x" }, { deep: [{ "": null, s: "\udc00" }] }),
    ...pick({}, {}, { malformed: "{" }),
  });
  const message = (): Message => {
    switch (below(5)) {
      case 0:
        return userMessage(pick<Message["content"]>(text(), [{ type: "text", text: text() }], []));
      case 1:
        return systemMessage(text());
      case 2:
        return assistantMessage(text());
      case 3:
        return {
          ...assistantMessage(text(), ...Array.from({ length: below(4) }, call)),
          model: pick("x:y", "openai:gpt-5-mini"),
        };
      default:
        return toolMessage(
          call(),
          pick<Message["content"]>(text(), [{ type: "text", text: text() }]),
          pick(undefined, text()),
        );
    }
  };
  return Array.from({ length: below(12) }, message);
}
