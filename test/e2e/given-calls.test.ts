// Runs that are started with calls in place of a message: they are carried out as a model's would be.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { textOf } from "../../src/agent/core/message.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { Script } from "../../src/agent/models/scripted.ts";
import { dataOf, names, textSeen } from "../support/drain.ts";
import { postJson } from "../support/native.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

/** A tool that counts, and an agent that has it. */
function payer(permissions = "") {
  const paid: unknown[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ to: z.string() }),
    execute: ({ to }) => `Paid ${to}, number ${paid.push(to)}.`,
  });
  const agents = `agents: { assistant: { model: "scripted:test", tools: [pay]${permissions} } }`;
  return { paid, options: { agents, tools: [tool], script: repeating } };
}

/** Says what it has read last. */
const repeating: Script = ({ messages }) => ({ say: `I read: ${textOf(messages.at(-1)?.content ?? "")}` });

const pay = (to: unknown) => ({ name: "pay", args: { to } });

async function started(url: string, body: object, headers: Record<string, string> = {}) {
  const viewer = await post(`${url}/threads/t1/runs`, body, headers);
  const events = await viewer.ended();
  return { viewer, events };
}

describe("calls that start a run", () => {
  test("run before the first model call, which contains their results; the thread marks them as the user's", async () => {
    const { options, paid } = payer();
    const { url } = await startServer(options);
    const { events } = await started(url, { input: "Go.", calls: [pay("ada"), pay("bob")] });
    expect(paid).toEqual(["ada", "bob"]);
    const steps = names(events).filter((name) => name === "on_tool_end" || name === "on_chat_model_start");
    expect(steps).toEqual(["on_tool_end", "on_tool_end", "on_chat_model_start"]);
    expect(textSeen(events)).toBe("I read: Paid bob, number 2.");
    const messages = dataOf(events, "on_message").map(({ message }) => message);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
    const ids = [expect.stringMatching(/^call_\w+$/), expect.stringMatching(/^call_\w+$/)];
    expect(messages[1]).toMatchObject({
      by_user: true,
      tool_calls: [
        { id: ids[0], ...pay("ada") },
        { id: ids[1], ...pay("bob") },
      ],
    });
    expect(messages[4]).not.toHaveProperty("by_user");
  });

  test("need no message, and can be made on a thread that ends with one", async () => {
    const { options, paid } = payer();
    const { url } = await startServer({ ...options, script: [{ say: "Yes?" }, { say: "Paid." }] });
    await started(url, { calls: [pay("ada")] });
    await started(url, { calls: [pay("bob")] });
    expect(paid).toEqual(["ada", "bob"]);
  });

  test("are refused with the list of tools, and leave no thread", async () => {
    const { options, paid } = payer();
    const { url } = await startServer({ ...options, config: { limits: { body_entries: 30_000 } } });
    const refused = async (body: object) => {
      const response = await postJson(`${url}/threads/t1/runs`, body);
      return {
        status: response.status,
        ...((await response.json()) as { detail: string; details?: object }),
      };
    };
    const unknown = await refused({ calls: [pay("ada"), { name: "fly" }] });
    expect(unknown).toMatchObject({ status: 400, details: { issues: [{ path: "calls.1.name" }] } });
    expect(unknown.detail).toMatch(
      /^calls\.1\.name: agent `assistant` has no tool `fly`\. It has: .*\bpay\b/,
    );
    const many = await refused({ calls: [{ name: "pay", args: { to: Array(20_001).fill(0) } }] });
    expect(many).toMatchObject({ status: 400, detail: expect.stringContaining("keys and values") });
    const long = await refused({ calls: [pay("x".repeat(1_000_001))] });
    expect(long).toMatchObject({ status: 400, detail: expect.stringContaining("the maximum is 1000000") });
    expect((await refused({ calls: [pay("ada")], continue: true })).status).toBe(400);
    expect((await refused({ calls: [] })).status).toBe(400);
    expect((await refused({ calls: Array(65).fill(pay("ada")) })).status).toBe(400);
    expect((await refused({ calls: [{ name: "pay", args: "ada" }] })).status).toBe(400);
    expect((await fetch(`${url}/threads/t1`)).status).toBe(404);
    expect(paid).toEqual([]);
  });

  test("that a rule asks about wait for the person, and run once after the answer", async () => {
    const { options, paid } = payer(
      ", permissions: { rules: [{ ask: pay }, { deny: pay, arguments: { to: eve } }] }",
    );
    const { url } = await startServer(options);
    const { events, viewer } = await started(url, { calls: [pay("ada"), pay("eve")] });
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    expect(paid).toEqual([]);
    const open = dataOf(events, "on_interrupt");
    expect(open).toMatchObject([{ kind: "approval", args: { to: "ada" } }]);
    const base = url + viewer.headers.get("location")?.replace(/\/events$/, "");
    const answers = [{ id: open[0]?.id, decision: "approve" }];
    const after = await (await post(`${base}/resume`, { answers })).ended();
    expect(dataOf(after, "done")[0]?.status).toBe("success");
    expect(paid).toEqual(["ada"]);
  });

  test("can use a client tool of the run, and the front end is asked for its result", async () => {
    const { url } = await startServer({ script: repeating });
    const tools = [{ name: "pick_colour", description: "Picks.", parameters: { type: "object" } }];
    const calls = [{ name: "pick_colour", args: { of: 3 } }];
    const { events, viewer } = await started(url, { calls, tools });
    const [asked] = dataOf(events, "on_interrupt");
    expect(asked).toMatchObject({ kind: "tool", name: "pick_colour", args: { of: 3 } });
    const base = url + viewer.headers.get("location")?.replace(/\/events$/, "");
    const answers = [{ id: asked?.id, decision: "respond", message: "red" }];
    expect(textSeen(await (await post(`${base}/resume`, { answers })).ended())).toBe("I read: red");
  });

  test("are made after messages of the same run, which guardrails check too", async () => {
    const { options, paid } = payer(
      ", hooks: { guardrails: { input: { topics: [plutonium] }, tool_args: { deny: [mallory] } } }",
    );
    const shown: string[] = [];
    const { url } = await startServer({
      ...options,
      script: ({ messages }) => {
        shown.push(JSON.stringify(messages));
        return { say: "ok" };
      },
    });
    const reasonOf = async (body: object) =>
      dataOf((await started(url, body)).events, "done")[0]?.stop_reason;
    expect(await reasonOf({ input: "Buy plutonium.", calls: [pay("ada")] })).toBe("refusal");
    expect(await reasonOf({ calls: [pay("plutonium inc")] })).toBe("refusal");
    expect(shown).toEqual([]);
    expect(await reasonOf({ calls: [pay("mallory")] })).toBe("end_turn");
    expect(paid).toEqual(["ada", "plutonium inc"]);
    expect(await reasonOf({ input: "And now?" })).toBe("end_turn");
    expect(shown.join()).not.toContain("plutonium");
  });
});
