import { describe, expect, test } from "vitest";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { ASKS, connected, EXECUTES, outcomeOf, run, started, textIn } from "./client.ts";

describe.each([["legacy"], ["auto"]] as const)("an MCP client (%s)", (era) => {
  test("that supports no forms receives the open questions, and answers with a tool", async () => {
    const client = await connected(await started(EXECUTES), { era });
    const asked = outcomeOf(await client.callTool(run("run it")));
    expect(asked).toMatchObject({
      status: "interrupted",
      interrupts: [{ kind: "approval", name: "execute", args: { command: "echo ran" }, prompt: "May it?" }],
    });
    const answer = { thread_id: asked.thread_id, decision: "approve" };
    const done = await client.callTool({ name: "answer", arguments: answer });
    expect(outcomeOf(done)).toMatchObject({ status: "success", text: "It ran." });
    const again = await client.callTool({ name: "answer", arguments: answer });
    expect(again.isError).toBe(true);
    expect(textIn(again)).toContain("has no open interrupt");
  });

  test("denies with a tool, and the agent learns why", async () => {
    const client = await connected(await started(EXECUTES), { era });
    const { thread_id } = outcomeOf(await client.callTool(run("run it")));
    const deny = { thread_id, decision: "deny", message: "Not on a Friday." };
    expect(outcomeOf(await client.callTool({ name: "answer", arguments: deny })).text).toContain(
      "Not on a Friday.",
    );
  });

  test("that supports forms asks its person within the call", async () => {
    const asked: string[] = [];
    const client = await connected(await started(EXECUTES), {
      era,
      ask: ({ params }) => {
        asked.push(params.message);
        return { action: "accept", content: { decision: "approve" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("run it")))).toMatchObject({
      status: "success",
      text: "It ran.",
    });
    expect(asked).toEqual([expect.stringContaining("May it?")]);
    expect(asked[0]).toContain("echo ran");
  });

  test.each([
    [{ action: "accept", content: { decision: "deny", reason: "Not on a Friday." } }, "Not on a Friday."],
    [{ action: "decline" }, "declined"],
    [{ action: "cancel" }, "dismissed the question"],
  ] as const)("whose person denies informs the agent: %j", async (answer, words) => {
    const client = await connected(await started(EXECUTES), { era, ask: () => answer });
    expect(outcomeOf(await client.callTool(run("run it"))).text).toContain(words);
  });

  test("shows a question with its options, and returns the answer", async () => {
    let shown: unknown;
    const client = await connected(await started(ASKS), {
      era,
      ask: ({ params }) => {
        shown = params;
        return { action: "accept", content: { answer: "blue" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("ask me"))).text).toBe("Blue it is.");
    expect(JSON.stringify(shown)).toContain("Which?");
    expect(JSON.stringify(shown)).toContain("red");
  });

  test("asks two questions of one run", async () => {
    const script: readonly Turn[] = [
      {
        call: [
          { tool: "ask_user", args: { question: "Which?" } },
          { tool: "ask_user", args: { question: "How many?" } },
        ],
      },
      { say: "Thanks." },
    ];
    const asked: string[] = [];
    const client = await connected(await started(script), {
      era,
      ask: ({ params }) => {
        asked.push(params.message);
        return { action: "accept", content: { answer: "two" } };
      },
    });
    expect(outcomeOf(await client.callTool(run("ask me"))).text).toBe("Thanks.");
    expect(asked).toEqual(["Which?", "How many?"]);
    const plain = await connected(await started(script), { era });
    const { thread_id } = outcomeOf(await plain.callTool(run("ask me")));
    const answer = { name: "answer", arguments: { thread_id, decision: "respond", message: "two" } };
    expect(textIn(await plain.callTool(answer))).toContain("Several interrupts are open.");
  });

  test("finds in a new session the questions that an earlier one left open", async () => {
    const url = await started(ASKS);
    const { thread_id } = outcomeOf(await (await connected(url, { era })).callTool(run("ask me")));
    const fresh = await connected(url, { era });
    const found = outcomeOf(await fresh.callTool({ name: "get_run", arguments: { thread_id } }));
    expect(found).toMatchObject({ status: "interrupted", interrupts: [{ prompt: "Which?" }] });
    const answer = { thread_id, decision: "respond", message: "blue", id: found.interrupts?.[0]?.id };
    const done = await fresh.callTool({ name: "answer", arguments: answer });
    expect(outcomeOf(done).text).toBe("Blue it is.");
  });
});
