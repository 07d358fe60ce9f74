import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import type { RunRecord } from "../../src/agent/core/records.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { killed, serve } from "../support/process.ts";
import { replicasOn } from "../support/replicas.ts";
import { temporaryFolder } from "../support/server.ts";
import { SHARED_STORES, type SharedStore } from "../support/shared-stores.ts";
import { numbers, post, seenOn, view } from "../support/sse.ts";

const isDelta = ({ event }: StreamEvent) => event === "on_chat_model_stream";
const json = { accept: "application/json", "content-type": "application/json" };

/** Starts one process more on a store of their own and one folder, whose model plays `script`. */
async function processesOn(shared: SharedStore | undefined, script: string, lease = "2s") {
  if (!shared) throw new Error("There was a store a moment ago.");
  const dir = await temporaryFolder();
  const config = join(dir, "server.yaml");
  await writeFile(config, `${shared.kind}: { url: "${await shared.database()}", lease: ${lease} }`);
  return () => serve(dir, script, { STORE: shared.kind, CONFIG_FILE: config });
}

const IN_A_COMMAND = `
- { say: Working., call: [{ tool: execute, args: { command: "echo begun | tee -a marks; sleep 60" } }] }
- { say: I look first., call: [{ tool: execute, args: { command: "cat marks" } }] }
- { say: It is over. }`;
/** Six seconds: a run is not over before its server is struck, on a busy machine either. */
const IN_WORDS = `- { say: ${"word ".repeat(60)}, delay_ms: 100 }`;

const IN_MANY_WORDS = `- { say: ${"word ".repeat(600)}, delay_ms: 100 }`;

const AGENTS = {
  lasting: { script: IN_MANY_WORDS },
  commanding: { script: IN_A_COMMAND, options: { backend: { type: "local" } } },
  speaking: { script: IN_WORDS },
};

// Above a store it does not matter which.
const [{ start, program }] = SHARED_STORES;
const shared = await start();
const replicas = replicasOn(shared, AGENTS, { shutdown: { grace: "0.1s" } });
afterAll(async () => {
  await replicas.close();
  await shared?.close();
});
/** One that a test may kill. */
const ownStore = async () => {
  const own = await start();
  onTestFinished(() => own?.close());
  return own;
};

needing(shared, program).describe(`a replica that is killed`, () => {
  test("during a command: another continues, and the command is not run twice", async () => {
    const { one, other } = await replicas.two();
    const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go", agent: "commanding" });
    await viewer.until(({ event }) => event === "on_tool_progress");
    await killed(one);
    await viewer.ended().catch(() => {});
    const events = await seenOn(viewer, other);
    expect(dataOf(events, "run_resumed")).toEqual([{ attempt: 2 }]);
    const results = dataOf(events, "on_tool_end").map(({ output, error }) => error ?? output);
    expect(results).toEqual([undefined, expect.stringMatching(/^Outcome unknown/), "begun\n[exit_code: 0]"]);
    expect(textSeen(events)).toContain("It is over.");
  });
});

needing(shared, program).describe(`a replica that is suspended for longer than its lease`, () => {
  test("can write nothing when it resumes, and drops the run by itself", async () => {
    const { one, other } = await replicas.two();
    const viewer = await post(`${one.url}/threads/t3/runs`, { input: "go", agent: "speaking" });
    await viewer.until(isDelta);
    one.child.kill("SIGSTOP");
    const elsewhere = await view(other.url + viewer.headers.get("location"));
    await elsewhere.until(({ event }) => event === "run_resumed");
    one.child.kill("SIGCONT");
    const events = await elsewhere.ended();
    expect(numbers(elsewhere.seen)).toEqual(elsewhere.seen.map((_, index) => index + 1));
    expect(dataOf(events, "run_resumed")).toHaveLength(1);
    // Its own viewers see what the other wrote.
    expect(await viewer.ended()).toEqual(events);
    await expect.poll(() => one.output()).toContain("lease_lost");
  });

  test("does not count as dead, however often this happens to a run", async () => {
    const { one, other } = await replicas.two();
    const body = { input: "go", agent: "lasting" };
    const viewer = await post(`${one.url}/threads/t6/runs`, body);
    await viewer.until(isDelta);
    let [holder, next] = [one, other];
    for (const attempt of [2, 3, 4, 5]) {
      const said = holder.output().length;
      holder.child.kill("SIGSTOP");
      const elsewhere = await view(next.url + viewer.headers.get("location"));
      await elsewhere.until((event) => event.event === "run_resumed" && event.data.attempt === attempt);
      const stopped = holder;
      stopped.child.kill("SIGCONT");
      await expect.poll(() => stopped.output().slice(said)).toContain("lease_lost");
      [holder, next] = [next, holder];
    }
    const [run] = ((await (await fetch(`${holder.url}/threads/t6/runs`)).json()) as { items: RunRecord[] })
      .items;
    expect(run).toMatchObject({ status: "running", attempt: 5 });
    await fetch(`${holder.url}/threads/t6/runs/${run?.id}/cancel`, { method: "POST" });
  });
});

needing(shared, program).describe(`a replica that is asked to stop`, () => {
  test("hands its run over immediately, and its viewers continue elsewhere", async () => {
    const { one, other } = await replicas.two();
    const waiting = fetch(`${one.url}/threads/t5/runs`, {
      method: "POST",
      headers: json,
      body: '{"input":"and wait","agent":"lasting"}',
    });
    waiting.catch(() => {});
    const t5 = async () => (await fetch(`${other.url}/threads/t5`)).json();
    await expect.poll(t5).toMatchObject({ status: "busy" });
    const viewer = await post(`${one.url}/threads/t4/runs`, { input: "go", agent: "speaking" });
    await viewer.until(isDelta);
    one.child.kill("SIGTERM");
    await viewer.ended();
    expect(viewer.others.at(-1)).toContain("server_shutdown");
    expect(await one.exited).toBe(0);
    const events = await seenOn(viewer, other);
    expect(dataOf(events, "done")[0]?.status).toBe("success");
    expect((await waiting).status).toBe(503);
    const { items } = (await (await fetch(`${other.url}/threads/t5/runs`)).json()) as { items: RunRecord[] };
    await fetch(`${other.url}/threads/t5/runs/${items[0]?.id}/cancel`, { method: "POST" });
  });
});

needing(shared, program).describe(`during an outage`, () => {
  test("for longer than a lease: a run fails and new ones are refused; afterwards, everything works without a restart", async () => {
    const own = await ownStore();
    const one = await (await processesOn(own, IN_WORDS))();
    const viewer = await post(`${one.url}/threads/t1/runs`, { input: "go" });
    await viewer.until(isDelta);
    await own?.kill();
    const run = () =>
      fetch(`${one.url}/threads/t2/runs`, { method: "POST", headers: json, body: '{"input":"Hi"}' });
    // Each answer takes as long as the run waits, which begins while the first is awaited.
    for (const refused of [await run(), await run()]) {
      expect(refused.status).toBe(503);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    await own?.start();
    // The stream may have ended before the end of the run could be stored.
    await viewer.ended();
    const events = await seenOn(viewer, one);
    expect(dataOf(events, "error")[0]?.code).toBe("unavailable");
    await expect.poll(() => statusOf(`${one.url}/ready`)).toBe(200);
    expect(await (await run()).json()).toMatchObject({ status: "success" });
  });
});

const statusOf = async (url: string) => (await fetch(url)).status;
