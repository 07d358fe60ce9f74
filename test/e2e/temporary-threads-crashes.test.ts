import { afterAll, expect } from "vitest";
import { postJson, threadsOf } from "../support/native.ts";
import { needing } from "../support/needing.ts";
import { killed } from "../support/process.ts";
import { replicasOn } from "../support/replicas.ts";
import { SHARED_STORES } from "../support/shared-stores.ts";

const AGENTS = {
  quick: { script: "- { say: Over. }" },
  speaking: { script: `- { say: ${"word ".repeat(20)}, delay_ms: 50 }` },
};

// Above a store it does not matter which.
const [{ start, program }] = SHARED_STORES;
const shared = await start();
const settings = { shutdown: { grace: "0.1s" }, retention: { temporary_threads: "2s" } };
const replicas = replicasOn(shared, AGENTS, settings);
afterAll(async () => {
  await replicas.close();
  await shared?.close();
});

needing(shared, program).test("a replica that is killed leaves no temporary thread behind", async () => {
  const { one, other } = await replicas.two();
  const begin = (agent: string, keep_thread: boolean) =>
    postJson(`${one.url}/runs`, { input: "go", agent, keep_thread, background: true });
  const kept = (await (await begin("quick", true)).json()) as { thread_id: string };
  for (const agent of ["quick", "speaking", "quick", "speaking"])
    expect((await begin(agent, false)).status).toBe(202);
  expect(await threadsOf(other.url)).toHaveLength(5);
  await killed(one);
  const ids = async () => (await threadsOf(other.url)).map(({ id }) => id);
  await expect.poll(ids, { timeout: 30_000 }).toEqual([kept.thread_id]);
});
