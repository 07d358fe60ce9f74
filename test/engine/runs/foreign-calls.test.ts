// Threads that begin with calls which were made elsewhere: no model reads that they were not run.

import { expect, test } from "vitest";
import { z } from "zod";
import { conversation, type Message, textOf } from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { foreignCalls } from "../../../src/engine/runs/foreign-calls.ts";
import { startRun } from "../../../src/engine/runs/start.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { ADA } from "../stores/fixture.ts";
import { command, managed } from "./managed.ts";

const { messages } = conversation().user("go").assistant("", { id: "c1", name: "pay", args: {} });

/** A thread `t` that begins with an open call of `pay`, and its fork `copy`. */
async function begun() {
  const stores = createMemoryStores();
  let paid = 0;
  const pay = defineTool({
    ...{ name: "pay", description: "Pays.", parameters: z.object({}) },
    execute: () => {
      paid++;
      return "Paid.";
    },
  });
  const { runs, start } = managed(stores, { script: [{ say: "I see." }], tools: [pay] });
  await runs.open();
  await stores.threads.create(ADA, { id: "t", metadata: {}, messages });
  await stores.threads.fork(ADA, "t", { id: "copy", metadata: {} });
  const results = async (id: string) => {
    await expect.poll(async () => (await stores.threads.get(ADA, id))?.status).toBe("idle");
    const all = await stores.threads.messages(ADA, id);
    return all.flatMap((each) => (each.role === "tool" ? [each.error ?? textOf(each.content)] : []));
  };
  return { runs, start, results, paid: () => paid };
}

test("a new message on a thread that was created with an open call does not report the call as not run", async () => {
  const { start, results, paid } = await begun();
  await start(ADA, "And now?", "t");
  expect(await results("t")).toEqual([
    expect.stringMatching(/^Outcome unknown: .* before its messages were added/),
  ]);
  expect(paid()).toBe(0);
});

test("a new message on a fork reports that a call of the first thread may have been run there", async () => {
  const { start, results } = await begun();
  await start(ADA, "And now?", "copy");
  expect(await results("copy")).toEqual([expect.stringMatching(/^Outcome unknown: .* forked from/)]);
});

test("a fork does not run the call of the first thread again", async () => {
  const { runs, results, paid } = await begun();
  const { request, ...rest } = command("copy", "");
  await startRun(runs, ADA, { ...rest, request: { ...request, input: [] } });
  expect(await results("copy")).toEqual([expect.stringMatching(/^Outcome unknown: .* forked from/)]);
  expect(paid()).toBe(0);
});

test("a run that is taken over before it has received its message does not report the call as not run", async () => {
  const claimOf = (attempt: number, input: readonly Message[]) => ({
    run: { attempt },
    request: { input },
  });
  const thread = { messages, open: ["c1"] };
  const next = conversation().user("And now?").messages;
  const madeElsewhere = (attempt: number, input: readonly Message[]) => [
    ...foreignCalls(claimOf(attempt, input) as never, thread, () => false),
  ];
  expect(madeElsewhere(2, next)).toEqual(["c1"]);
  expect(madeElsewhere(2, messages)).toEqual([]);
});

test("a thread does not run a call that was part of its initial messages", async () => {
  const { runs, results, paid } = await begun();
  const { request, ...rest } = command("t", "");
  await startRun(runs, ADA, { ...rest, request: { ...request, input: [] } });
  expect(await results("t")).toEqual([expect.stringMatching(/^Outcome unknown: /)]);
  expect(paid()).toBe(0);
});
