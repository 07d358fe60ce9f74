// The last release beside this one, as during an upgrade: on one store, killed at every step; and one after the other on one SQLite file.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StreamEvent } from "../../src/protocol/event.ts";
import type { Interrupt } from "../../src/protocol/interrupt.ts";
import { dataOf, names } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { type ServerProcess, serving, skein } from "../support/process.ts";
import { MAIN } from "../support/program.ts";
import { lastReleases } from "../support/releases.ts";
import {
  type Replicas,
  replicasOn,
  type ScriptedAgent,
  settingsIn,
  writeAgents,
} from "../support/replicas.ts";
import { sampled } from "../support/seed.ts";
import { temporaryFolder } from "../support/server.ts";
import { type SharedStore, USUAL_STORES } from "../support/shared-stores.ts";
import { post, seenOn, type Viewer, view } from "../support/sse.ts";
import { contradictionsIn } from "../support/store-check.ts";

const LOCAL = { backend: { type: "local" } };
/** The agent `held` works until there is such a file. */
const GO = join(await mkdtemp(join(tmpdir(), "skein-")), "go");
afterAll(() => rm(dirname(GO), { recursive: true }));
const AGENTS: Readonly<Record<string, ScriptedAgent>> = {
  speaker: { script: "- { say: a b c d e f g h, delay_ms: 100 }", options: LOCAL },
  worker: {
    script: `
- { say: Working., call: [{ tool: execute, args: { command: "echo begun; sleep 2; echo over" } }] }
- { say: It is over., delay_ms: 200 }`,
    options: LOCAL,
  },
  held: {
    script: `
- { say: Working., call: [{ tool: execute, args: { command: "echo begun; until [ -e ${GO} ]; do sleep 0.1; done" } }] }
- { say: It is over. }`,
    options: LOCAL,
  },
  asker: {
    script: `
- { call: [{ tool: execute, args: { command: "echo done >> asked; cat asked" } }] }
- { say: It was allowed. }`,
    options: { ...LOCAL, permissions: { rules: [{ ask: "execute", message: "May it?" }] } },
  },
  lead: {
    script: `
- { call: [{ tool: task, id: call_1, args: { agent: helper, task: Which colour?, context: "-" } }] }
- { say: "Red, says the helper.", delay_ms: 200 }`,
    options: { ...LOCAL, subagents: ["helper"] },
  },
  helper: {
    script: `- { say: a b c d e f g h, delay_ms: 100, call: [{ tool: task_complete, args: { status: completed, summary: Red. } }] }`,
    options: { ...LOCAL, description: "Helps." },
  },
};

const launch = (dir: string, main: string): Promise<ServerProcess> => serving(started(dir, main));
const started = (dir: string, main: string) => skein(["serve"], settingsIn(dir), undefined, main);

async function stop({ child, exited }: ServerProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  child.kill(signal);
  await exited;
}

const start = ({ url }: ServerProcess, thread: string, agent: string, more: object = {}) =>
  post(`${url}/threads/${thread}/runs`, { input: "go", agent, ...more });
const resume = async ({ url }: ServerProcess, thread: string, viewer: Viewer) => {
  const { items } = await json<{ items: Interrupt[] }>(`${url}/threads/${thread}/interrupts`);
  const answers = items.map(({ id }) => ({ id, decision: "approve" }));
  return post(`${url}${viewer.headers.get("location")?.replace(/events$/, "resume")}`, { answers });
};
async function json<T>(url: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(url, init);
  expect(answer.status, url).toBeLessThan(300);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}
const messagesOn = ({ url }: ServerProcess, thread: string) =>
  json<{ items: { role: string; content: string }[] }>(`${url}/threads/${thread}/messages`);
const statusOf = (events: readonly StreamEvent[]) => dataOf(events, "done").at(-1)?.status;
const first =
  (...wanted: string[]) =>
  ({ event, path }: StreamEvent) =>
    wanted.includes(path ? `${event} below` : event);

/** Where the process is killed: at the first event of that name. */
const MOMENTS = [
  ["as the run begins", "worker", first("run_start")],
  ["as the model is asked", "worker", first("on_chat_model_start")],
  ["while the model answers", "speaker", first("on_chat_model_stream")],
  ["as a tool starts", "worker", first("on_tool_start")],
  ["while the tool works", "worker", first("on_tool_progress")],
  ["when the tool has ended", "worker", first("on_tool_end")],
  ["as a subagent starts", "lead", first("on_subagent_start")],
  ["while a subagent answers", "lead", first("on_chat_model_stream below")],
  ["when a subagent has ended", "lead", first("on_subagent_end")],
] as const;

for (const { commit, main, stores } of await lastReleases()) {
  const old = main ?? "";
  needing(main, "the last release: git, its commit in this clone, and npm's registry").describe(
    `release ${commit}`,
    () => {
      if (stores.includes("sqlite")) describe("on SQLite", () => sqliteTests(old));
      for (const { start: startStore, program } of USUAL_STORES)
        if (stores.some((kind) => program.startsWith(kind)))
          describe(`the last release next to this one, on ${program},`, () => sharedTests(old, startStore));
    },
  );
}

function sqliteTests(old: string) {
  const threadsOf = async ({ url }: ServerProcess) =>
    (await json<{ items: { id: string }[] }>(`${url}/threads`)).items.map(({ id }) => id).sort();

  test("leaves its threads and runs to this one, and the other way round", async () => {
    const dir = await temporaryFolder();
    await writeAgents(dir, AGENTS);
    await writeFile(join(dir, "server.yaml"), '{ "store": "sqlite" }');
    const before = await launch(dir, old);
    await (await start(before, "done", "worker")).ended();
    const asked = await start(before, "asked", "asker");
    await asked.ended();
    const active = await start(before, "active", "worker");
    const waits = await fetch(`${before.url}/threads/active/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        input: "and then",
        agent: "speaker",
        on_busy: "enqueue",
        background: true,
      }),
    });
    expect(waits.status).toBe(202);
    await active.until(first("on_tool_progress"));
    await stop(before, "SIGKILL");
    await active.ended().catch(() => {});

    const after = await launch(dir, MAIN);
    expect(await threadsOf(after)).toEqual(["active", "asked", "done"]);
    expect(statusOf(await seenOn(active, after))).toBe("success");
    await expect
      .poll(async () => (await messagesOn(after, "active")).items.at(-1)?.content)
      .toBe("a b c d e f g h");
    expect(statusOf(await (await resume(after, "asked", asked)).ended())).toBe("success");
    expect(statusOf(await (await start(after, "done", "worker")).ended())).toBe("success");
    await stop(after, "SIGTERM");

    const back = await launch(dir, old);
    expect(await threadsOf(back)).toEqual(["active", "asked", "done"]);
    expect((await messagesOn(back, "active")).items.at(-1)?.content).toBe("a b c d e f g h");
    expect(statusOf(await (await start(back, "done", "worker")).ended())).toBe("success");
    await stop(back, "SIGTERM");
    expect(await threadsOf(await launch(dir, MAIN))).toEqual(["active", "asked", "done"]);
    expect(await contradictionsIn({ sqlite: join(dir, "data") })).toEqual([]);
  });
}

function sharedTests(old: string, startStore: () => Promise<SharedStore | undefined>) {
  let shared: SharedStore | undefined;
  afterAll(() => shared?.close());

  describe.each([
    ["it", "this one", old, MAIN, 0],
    ["this one", "it", MAIN, old, 1],
  ])("a run that %s starts, %s", (_, __, oneMain, otherMain, half) => {
    // The other half of the moments is tried in the other direction.
    const moments = sampled(MOMENTS, 3).filter((___, index) => index % 2 === half);
    let replicas: Replicas;
    beforeAll(async () => {
      shared ??= await startStore();
      replicas = replicasOn(shared, AGENTS, {}, { one: oneMain, other: otherMain });
    });
    afterAll(() => replicas.close());

    test("can be continued, shown, stopped, steered and deleted", async () => {
      const { one, other } = await replicas.two();
      const heard = await view(`${other.url}/events`);
      const told = await start(one, "t1", "speaker");
      await told.until(first("on_chat_model_stream"));
      const follows = await view(other.url + told.headers.get("location"));
      const events = await told.ended();
      expect(statusOf(events)).toBe("success");
      expect(await follows.ended()).toEqual(events);
      await expect.poll(() => heard.others.join("\n")).toMatch(/run_started.*run_ended/s);
      heard.leave();

      const more = await start(other, "t1", "speaker");
      expect(statusOf(await more.ended())).toBe("success");
      for (const server of [one, other]) {
        const { items } = await messagesOn(server, "t1");
        expect(items.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
      }

      await rm(GO, { force: true });
      const steered = await start(one, "t2", "held");
      await steered.until(first("on_tool_progress"));
      const at = other.url + steered.headers.get("location")?.replace(/\/events$/, "");
      const headers = { "content-type": "application/json" };
      await json(`${at}/messages`, { method: "POST", headers, body: '{"content":"and hurry"}' });
      await writeFile(GO, "");
      const seen = dataOf(await steered.ended(), "on_message").map(({ message }) => message.content);
      expect(seen).toContain("and hurry");

      await rm(GO);
      const stopped = await start(one, "t3", "held");
      await stopped.until(first("on_tool_progress"));
      const run = other.url + stopped.headers.get("location")?.replace(/\/events$/, "");
      await json(`${run}/cancel`, { method: "POST" });
      expect(statusOf(await stopped.ended())).toBe("cancelled");

      await json(`${other.url}/threads/t1`, { method: "DELETE" });
      expect((await fetch(`${one.url}/threads/t1`)).status).toBe(404);
      const callsOn = async ({ url }: ServerProcess) =>
        (await json<{ totals: { calls: number } }>(`${url}/usage`)).totals.calls;
      await expect.poll(async () => (await callsOn(one)) - (await callsOn(other))).toBe(0);
    });

    test("can be answered by the other even if its process is killed", async () => {
      const { one, other } = await replicas.two();
      const asked = await start(one, "a1", "asker");
      expect(statusOf(await asked.ended())).toBe("interrupted");
      const too = await start(one, "a2", "asker");
      await too.ended();
      const answered = await (await resume(other, "a1", asked)).ended();
      expect(statusOf(answered)).toBe("success");
      expect(dataOf(answered, "on_tool_end").map(({ output }) => output)).toEqual(["done\n[exit_code: 0]"]);
      await stop(one, "SIGKILL");
      expect(statusOf(await (await resume(other, "a2", too)).ended())).toBe("success");
    });

    test("leaves queued runs to the other", async () => {
      const { one, other } = await replicas.two();
      const active = await start(one, "w1", "worker");
      await active.until(first("on_tool_progress"));
      const waiting = await start(one, "w1", "speaker", { on_busy: "enqueue" });
      await stop(one, "SIGKILL");
      await Promise.all([active, waiting].map((viewer) => viewer.ended().catch(() => {})));
      expect(statusOf(await seenOn(active, other))).toBe("success");
      expect(statusOf(await seenOn(waiting, other))).toBe("success");
    });

    test("is taken over if its process is killed at any step, and both show the same", async () => {
      const threads: string[] = [];
      for (const [when, agent, isMoment] of moments) {
        // On a busy machine a run may be over before its process is killed: then it says nothing.
        for (let [isTakenOver, tries] = [false, 0]; !isTakenOver; tries++) {
          if (tries === 10) expect.fail(`The run was never taken over: ${when}`);
          const { one, other } = await replicas.two();
          const thread = `k${threads.length}`;
          const viewer = await start(one, thread, agent);
          await viewer.until(isMoment);
          await stop(one, "SIGKILL");
          await viewer.ended().catch(() => {});
          const events = await seenOn(viewer, other);
          expect(statusOf(events), when).toBe("success");
          isTakenOver = names(events).includes("run_resumed");
          threads.push(thread);
        }
      }
      const { one, other } = await replicas.two();
      for (const thread of threads)
        expect(await messagesOn(one, thread)).toEqual(await messagesOn(other, thread));
      const [left, gone] = otherMain === MAIN ? [other, one] : [one, other];
      await stop(gone, "SIGTERM");
      for (const thread of threads)
        expect(statusOf(await (await start(left, thread, "speaker")).ended()), thread).toBe("success");
    }, 600_000);
  });
}
