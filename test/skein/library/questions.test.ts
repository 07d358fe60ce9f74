import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { createRuntime } from "../../../src/index.ts";
import { agentWith, runtimeWith } from "../../support/library.ts";
import { temporaryFolder } from "../../support/server.ts";

describe("a run's question", () => {
  const wipe = defineTool({
    name: "wipe",
    description: "Wipes a disk.",
    parameters: z.object({ disk: z.string() }),
    execute: ({ disk }) => `wiped ${disk}`,
  });
  const wiper = (...disks: string[]) =>
    agentWith([{ call: disks.map((disk) => ({ tool: "wipe", args: { disk } })) }, { say: "Done." }], {
      tools: [wipe],
      permissions: { mode: "default" },
    });

  test("is part of its result, and the answer resumes the run", async () => {
    const handle = runtimeWith().spawn(wiper("sda"), { input: "Wipe it." });
    const asked = await handle.result;
    expect(asked.status).toBe("interrupted");
    expect(asked.interrupts).toMatchObject([{ kind: "approval", name: "wipe", args: { disk: "sda" } }]);
    await handle.answer(asked.interrupts.map(({ id }) => ({ id, decision: "approve" })));
    const { text, messages, run } = await handle.result;
    expect(text).toBe("Done.");
    expect(messages[0]).toMatchObject({ role: "tool", content: "wiped sda" });
    expect(run.resumes).toBe(asked.run.id);
    expect(await handle.interrupts()).toEqual([]);
  });

  test("runs the approved call with arguments that its tool can change", async () => {
    const search = defineTool({
      name: "search",
      description: "Searches.",
      parameters: z.object({ query: z.looseObject({ terms: z.array(z.unknown()) }), filter: z.unknown() }),
      execute({ query, filter }) {
        query.terms.push("more");
        return JSON.stringify([query, Object.assign(Object(filter), { limit: 10 })]);
      },
    });
    const args = { query: { terms: ["a"] }, filter: { since: "today" } };
    const agent = agentWith([{ call: [{ tool: "search", args }] }, { say: "Done." }], {
      tools: [search],
      permissions: { mode: "default" },
    });
    const handle = runtimeWith().spawn(agent, { input: "Search." });
    const { interrupts } = await handle.result;
    await handle.answer(interrupts.map(({ id }) => ({ id, decision: "approve" })));
    const { messages } = await handle.result;
    const output = '[{"terms":["a","more"]},{"since":"today","limit":10}]';
    expect(messages[0]).toMatchObject({ role: "tool", content: output });
    expect((await handle.history())[1]).toMatchObject({ tool_calls: [{ name: "search", args }] });
  });

  test("is answered call by call", async () => {
    const handle = runtimeWith().spawn(wiper("sda", "sdb"), { input: "Wipe both." });
    const { interrupts } = await handle.result;
    const answers = interrupts.map(({ id }) => ({ id, decision: "deny" as const, message: "No." }));
    await Promise.all(answers.map((answer) => handle.answer([answer])));
    expect((await handle.result).text).toBe("Done.");
    const results = (await handle.history()).filter(({ role }) => role === "tool");
    expect(results).toMatchObject([{ error: "No." }, { error: "No." }]);
    await expect(handle.answer(answers)).rejects.toMatchObject({ code: "run_not_active" });
  });

  test("is closed if the run is cancelled", async () => {
    const handle = runtimeWith().spawn(wiper("sda"), { input: "Wipe it." });
    await handle.result;
    await handle.cancel();
    expect(await handle.interrupts()).toEqual([]);
    expect((await handle.history()).at(-1)).toMatchObject({ role: "tool", error: expect.any(String) });
  });

  test("can be answered after a restart of the program, if its store is durable", async () => {
    const dataDir = await temporaryFolder();
    const started = () => {
      const stores = createSqliteStores({ dataDir });
      const runtime = createRuntime({ stores, agents: [wiper("sda")] });
      const stop = async () => {
        await runtime.close();
        await stores.close();
      };
      return { runtime, stop };
    };
    const first = started();
    const { id, result } = first.runtime.spawn("agent", { input: "Wipe it." });
    const { interrupts } = await result;
    await first.stop();
    const second = started();
    onTestFinished(second.stop);
    const handle = await second.runtime.get(id);
    expect(await handle?.interrupts()).toEqual(interrupts);
    await handle?.answer(interrupts.map(({ id }) => ({ id, decision: "approve" })));
    await handle?.result;
    expect((await handle?.history())?.find(({ role }) => role === "tool")).toMatchObject({
      content: "wiped sda",
    });
  });

  test("to the program itself is a call that it answers with a result", async () => {
    const parameters = { type: "object", properties: {} };
    const client_tools = [{ name: "locate", description: "Where the user is.", parameters }];
    const agent = agentWith([
      {
        call: [
          { tool: "locate", id: "c1" },
          { tool: "locate", id: "c2" },
        ],
      },
      { say: "Ah." },
    ]);
    const handle = runtimeWith().spawn(agent, { input: "Where am I?", client_tools });
    expect((await handle.result).status).toBe("interrupted");
    await Promise.all([
      handle.submitToolResult("c1", "Graz"),
      handle.submitToolResult("c2", { error: "No GPS." }),
    ]);
    expect((await handle.result).text).toBe("Ah.");
    const results = (await handle.history()).filter(({ role }) => role === "tool");
    expect(results).toMatchObject([{ content: "Graz" }, { error: "No GPS." }]);
  });
});
