// Calls that a thread had left open when a backup was made: after a restore no model reads that they were not run, and no process
// runs them again by itself.

import { expect, test } from "vitest";
import { z } from "zod";
import { conversation, textOf } from "../../../src/agent/core/message.ts";
import { askFor } from "../../../src/agent/core/open-interrupts.ts";
import { defineTool, done, interrupted } from "../../../src/agent/core/tool.ts";
import { resumeRun } from "../../../src/engine/runs/start.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { ADA, claimed } from "../stores/fixture.ts";
import { managed } from "./managed.ts";

const BACKUP_AT = "2026-11-23T10:00:00.000Z";
const RESTORED = /^Outcome unknown: .* restored from a backup made at 2026-11-23T10:00:00.000Z/;
/** A restore after all that the tests do, and one before. */
const LATER = { backup_at: BACKUP_AT, restored_at: "2999-01-01T00:00:00.000Z" };
const BEFORE = { backup_at: BACKUP_AT, restored_at: "2000-01-01T00:00:00.000Z" };

/** An engine whose tools note that they were executed: `launch` asks first. */
function engine(restoration = LATER) {
  const stores = createMemoryStores();
  const executed: string[] = [];
  const work = (name: string, readOnly: boolean) =>
    defineTool({
      ...{ name, description: "Works.", parameters: z.object({}), annotations: { readOnly } },
      execute: () => {
        executed.push(name);
        return "Done.";
      },
    });
  const launch = defineTool({
    ...{ name: "launch", description: "Asks.", parameters: z.object({}) },
    async *execute(_args, call, run) {
      const answer = yield* askFor({ call, kind: "approval", prompt: "Launch?" }, run);
      if (!answer) return interrupted();
      executed.push("launch");
      return done("Launched.");
    },
  });
  const script = [{ call: [{ tool: "launch", id: "c1" }] }, { say: "I see." }];
  const tools = [work("pay", false), work("look", true), launch];
  const { runs, start } = managed(stores, { script, tools, restoration });
  const endOf = (status: string) =>
    expect.poll(async () => (await stores.threads.get(ADA, "t"))?.status).toBe(status);
  const results = async () => {
    await endOf("idle");
    const all = await stores.threads.messages(ADA, "t");
    return all.flatMap((each) => (each.role === "tool" ? [each.error ?? textOf(each.content)] : []));
  };
  return { stores, runs, start, endOf, results, executed };
}

/** A run that was left with open calls of `pay` and `look`, neither of which its log has started. */
async function leftOpen({ stores }: ReturnType<typeof engine>) {
  const { lease, request } = await claimed(stores, "t");
  const calls = ["pay", "look"].map((name) => ({ id: `call_${name}`, name, args: {} }));
  const { messages } = conversation().assistant("", ...calls);
  await stores.events.append(lease, [
    { event: "run_start", data: { agent: "helper", model: "scripted:test", attempt: 1 } },
    ...[...request.input, ...messages].map(
      (message): StreamEvent => ({ event: "on_message", data: { message } }),
    ),
  ]);
  await stores.runs.release(lease);
}

test("a run that is taken over after a restore repeats its open calls only if that is harmless", async () => {
  const restored = engine();
  await leftOpen(restored);
  await restored.runs.open();
  await restored.endOf("interrupted");
  expect(restored.executed).toEqual(["look"]);
  const all = await restored.stores.threads.messages(ADA, "t");
  const paid = all.find((each) => each.role === "tool" && each.tool_call_id === "call_pay");
  expect(paid).toMatchObject({ error: expect.stringMatching(RESTORED) });
});

test("a run that is taken over runs the open calls that it has made since the restore", async () => {
  const since = engine(BEFORE);
  await leftOpen(since);
  await since.runs.open();
  await since.endOf("interrupted");
  expect(since.executed.toSorted()).toEqual(["look", "pay"]);
});

test("a new message on a restored, waiting thread does not report the call as not run", async () => {
  const { runs, start, endOf, results } = engine();
  await runs.open();
  await start(ADA, "go", "t");
  await endOf("interrupted");
  await start(ADA, "Never mind.", "t");
  expect(await results()).toEqual([expect.stringMatching(RESTORED)]);
});

test("an answer to a restored question runs its call", async () => {
  const { runs, start, endOf, results, executed } = engine();
  await runs.open();
  const { id: run_id } = await start(ADA, "go", "t");
  await endOf("interrupted");
  const answers = [{ id: "approval_c1", decision: "approve" as const }];
  await resumeRun(runs, ADA, { thread_id: "t", run_id, answers });
  expect(await results()).toEqual(["Launched."]);
  expect(executed).toEqual(["launch"]);
});
