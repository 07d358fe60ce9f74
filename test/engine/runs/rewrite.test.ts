// Messages that join a thread without its model being asked, where processes die or have no slot. No sandbox is started for them.

import { expect, test } from "vitest";
import { conversation, type Message } from "../../../src/agent/core/message.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { ADA, newRun } from "../stores/fixture.ts";
import { managed } from "./managed.ts";

const { messages } = conversation()
  .user("go")
  .assistant("", { id: "c1", name: "pay", args: {} })
  .tool("c1", "pay", "Paid.")
  .user("And now?");

const appending = (input: readonly Message[]) =>
  newRun("t", { request: { settings: {}, input: [...input], cancel: true, appends: true } });

/** What the thread holds once the next process has taken its run. */
async function after(prepare: (stores: ReturnType<typeof createMemoryStores>) => Promise<unknown>) {
  const stores = createMemoryStores();
  await prepare(stores);
  const { agents } = managed(stores);
  const agent = { ...agents.find(undefined), backend: { type: "a sandbox that nothing here may start" } };
  const { runs } = managed(stores, { script: [], agents: { find: () => agent } });
  await runs.open();
  await expect.poll(async () => (await stores.threads.get(ADA, "t"))?.status).toBe("idle");
  const [run] = (await stores.runs.list(ADA, "t", { limit: 1 })).items;
  expect(run).toMatchObject({ status: "success" });
  return stores.threads.messages(ADA, "t");
}

test("exist once a process has a free slot, even if none had when they were accepted", async () => {
  expect(await after((stores) => stores.runs.enqueue(ADA, appending(messages), "reject"))).toEqual(messages);
});

test.each([1, 2, 3])("exist once, even if a process died after writing %i of them", async (count) => {
  const held = await after(async ({ runs, events }) => {
    const started = await runs.start(ADA, appending(messages), "reject");
    if (started.outcome !== "claimed") throw new Error("The thread was free.");
    const { lease } = started.claim;
    await events.append(lease, [
      { event: "run_start", data: { agent: "helper", model: "scripted:test", attempt: 1 } },
      ...messages.slice(0, count).map((message) => ({ event: "on_message", data: { message } }) as const),
    ]);
    await runs.release(lease);
  });
  expect(held).toEqual(messages);
});
