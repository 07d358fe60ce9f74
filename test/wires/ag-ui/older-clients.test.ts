// Pages with an older client of AG-UI, which end a run at an event that they do not know.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { project } from "../../../src/wires/ag-ui/table.ts";
import { arbitraryRun, RUN } from "../../support/arbitrary-run.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { FILE_AGENTS } from "../agents.ts";

const MESSAGE = ["START", "CONTENT", "END"];
/** What `@ag-ui/core` of these versions has, of what this server sends. */
const FIRST = new Set([
  ...MESSAGE.map((part) => `TEXT_MESSAGE_${part}`),
  ...MESSAGE.map((part) => `THINKING_TEXT_MESSAGE_${part}`),
  ...["THINKING_START", "THINKING_END", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"],
  ...["TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "CUSTOM"],
  ...["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"],
]);
const ACTIVITIES = ["ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA"];
const REASONING = ["REASONING_START", "REASONING_END", ...MESSAGE.map((part) => `REASONING_MESSAGE_${part}`)];
const KNOWN: Readonly<Record<number, ReadonlySet<string>>> = {
  40: FIRST,
  42: new Set([...FIRST, ...ACTIVITIES]),
  45: new Set([...FIRST, ...ACTIVITIES, ...REASONING]),
  50: new Set([...FIRST, ...ACTIVITIES, ...REASONING]),
};

interface Event {
  readonly type: string;
  readonly delta?: string;
  readonly outcome?: object;
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
}

test.each([40, 42, 45, 50])(
  "a client 0.0.%i receives no event that it does not know, and no outcome to answer",
  (version) => {
    fc.assert(
      fc.property(arbitraryRun, (events) => {
        const fold = project({
          ...{ threadId: "t", runId: "r", isCurrent: false, version },
          ...{ messages: [], state: {}, showsMessages: true },
        });
        const sent = events
          .flatMap((event) => fold(event, RUN))
          .map(({ data }) => JSON.parse(typeof data === "string" ? data : [...data.parts].join("")) as Event);
        for (const { type } of sent) expect(KNOWN[version]).toContain(type);
        for (const { outcome } of sent) expect(JSON.stringify(outcome ?? {})).not.toContain("interrupts");
        const roles = new Set(sent.flatMap(({ messages = [] }) => messages.map(({ role }) => role)));
        if (version < 45) expect([...roles]).not.toContain("reasoning");
      }),
    );
  },
);

describe("a page with a client before 0.0.51", () => {
  const started = async (script: readonly Turn[] | Script) => {
    const { url } = await startServer({ script, agents: FILE_AGENTS });
    const sent: object[] = [];
    const ask = async (route: "run" | "connect", version = "0.0.40") => {
      const input = { threadId: "t", runId: "r", messages: sent, tools: [], context: [], state: {} };
      const answer = await postJson(`${url}/ag-ui/agent/assistant/${route}?v=${version}`, input);
      if (!answer.ok) return [{ type: String(answer.status), delta: await answer.text() }];
      return (await answer.text())
        .split("\n\n")
        .flatMap((frame) => (frame.startsWith("data: ") ? [JSON.parse(frame.slice(6)) as Event] : []));
    };
    const say = (content: unknown) => {
      sent.push({ id: `u${sent.length}`, role: "user", content });
      return ask("run");
    };
    return { ask, say };
  };
  const textIn = (events: readonly Event[]) =>
    events.flatMap(({ type, delta }) => (type === "TEXT_MESSAGE_CONTENT" ? [delta] : [])).join("");
  const RUNS: Turn = { call: [{ tool: "execute", args: { command: "echo ran" } }] };

  test("is asked with text, even when it is opened again, and answers with text", async () => {
    const { ask, say } = await started([RUNS, { say: "It ran." }]);
    expect(textIn(await say("go"))).toBe("May it?\n\nReply “approve” or “deny”.");
    expect(textIn(await ask("connect"))).toContain("Reply “approve”");
    const answered = await say("approve");
    expect(textIn(answered)).toBe("It ran.");
    expect(answered.map(({ type }) => type)).toContain("TOOL_CALL_RESULT");
  });

  test("sends its answer again after a lost connection, and it does not count as a message", async () => {
    let read = "";
    const { ask, say } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0 ? RUNS : { say: "It ran." };
    });
    await say("go");
    expect(textIn(await say("approve"))).toBe("It ran.");
    expect(textIn(await ask("run"))).toBe("It ran.");
    expect(read).not.toContain("approve");
  });

  test("answers a question with one of its options", async () => {
    const args = { question: "Which?", options: ["red", "blue"] };
    const { say } = await started([{ call: [{ tool: "ask_user", args }] }, { say: "Blue it is." }]);
    expect(textIn(await say("ask me"))).toBe(["Which?", "- red", "- blue"].join("\n"));
    expect(textIn(await say("Blue"))).toBe("Blue it is.");
  });

  test("can write something else, and the call in question does not run", async () => {
    let read = "";
    const { say } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0 ? RUNS : { say: "Well." };
    });
    await say("go");
    expect(textIn(await say("Tell me a joke."))).toBe("Well.");
    expect(read).toContain("Tell me a joke.");
  });

  test("receives thinking under its old event names, and images in a snapshot as text", async () => {
    const { ask, say } = await started([{ think: "Hm.", say: "A dot." }]);
    const source = { type: "data", value: "aGk=", mimeType: "text/plain" };
    const events = await say([
      { type: "text", text: "What is it?" },
      { type: "document", source },
    ]);
    expect(
      events.flatMap(({ type, delta }) => (type === "THINKING_TEXT_MESSAGE_CONTENT" ? [delta] : [])),
    ).toEqual(["Hm."]);
    const snapshot = (await ask("connect")).find(({ type }) => type === "MESSAGES_SNAPSHOT");
    expect(snapshot?.messages?.map(({ role, content }) => [role, content])).toEqual([
      ["user", "What is it?\n[text/plain]"],
      ["assistant", "A dot."],
    ]);
  });

  test("is refused for a version in another format", async () => {
    const { ask } = await started([]);
    for (const version of ["1", "0.1.2", "0.0.x"])
      expect((await ask("connect", version))[0]).toMatchObject({ type: "400" });
  });
});
