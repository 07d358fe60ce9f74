// Runs whose every attempt kills its process, and innocent ones beside them, on each store that outlives a process.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { RunRecord } from "../../src/agent/core/records.ts";
import { needing } from "../support/needing.ts";
import { killed, type ServerProcess, serving, skein } from "../support/process.ts";
import { settingsIn } from "../support/replicas.ts";
import { temporaryFolder } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";

/** `poison` kills its process, if it can with two others at work; the others need longer than it waits for them. */
const PLUGIN = `
import { definePlugin } from "skein";

let atWork = 0;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function* stream({ messages }) {
  if (messages.at(-1).content === "poison") {
    for (let waited = 0; waited < 600 && atWork < 2; waited += 20) await pause(20);
    process.kill(process.pid, "SIGKILL");
  }
  atWork++;
  await pause(1500);
  atWork--;
  const usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
  return { content: "well", tool_calls: [], reasoning: [], stop_reason: "end_turn", usage };
}

export default definePlugin({ name: "odd", models: { odd: () => ({ name: "odd:one", stream }) } });
`;

const INNOCENT = ["ada", "bob"];

/** Servers in one folder, each started again when it dies. */
async function serversOn(config: object, count: number) {
  const dir = await temporaryFolder();
  const agents = { agents: { odd: { model: "odd:one" } } };
  await writeFile(join(dir, "odd.ts"), PLUGIN);
  await writeFile(join(dir, "agents.yaml"), JSON.stringify(agents));
  await writeFile(join(dir, "server.yaml"), JSON.stringify({ ...config, plugins: ["./odd.ts"] }));
  const running = new Map<number, ServerProcess>();
  let isOver = false;
  const keep = async (place: number): Promise<void> => {
    const server = await serving(skein(["serve"], settingsIn(dir)));
    running.set(place, server);
    void server.exited.then(() => {
      running.delete(place);
      if (!isOver) void keep(place).catch(() => {});
    });
  };
  onTestFinished(() => {
    isOver = true;
  });
  for (let place = 0; place < count; place++) await keep(place);
  return {
    /** Undefined while none is up. */
    async ask(path: string, body?: object): Promise<unknown> {
      const url = running.values().next().value?.url;
      if (url === undefined) return undefined;
      const headers = { "content-type": "application/json" };
      const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
      const reply = await fetch(url + path, request).catch(() => undefined);
      return reply?.ok ? await reply.json().catch(() => undefined) : undefined;
    },
    async close() {
      isOver = true;
      await Promise.all([...running.values()].map(killed));
    },
  };
}

/** Starts the runs, `poison-2` when one of the others is on trial, and resolves with how each ended. */
async function outcomesOn(servers: Awaited<ReturnType<typeof serversOn>>): Promise<Record<string, unknown>> {
  const start = (thread: string, input = thread) =>
    servers.ask(`/threads/${thread}/runs`, { input, background: true });
  const runOf = async (thread: string) => {
    const listed = (await servers.ask(`/threads/${thread}/runs`)) as { items: RunRecord[] } | undefined;
    return listed?.items[0];
  };
  const attempts = async () => {
    const runs = await Promise.all([...INNOCENT, "poison"].map(runOf));
    return Math.max(...runs.map((run) => run?.attempt ?? 0));
  };
  for (const thread of [...INNOCENT, "poison"]) await start(thread);
  await expect.poll(attempts, { interval: 50 }).toBeGreaterThan(2);
  await expect.poll(() => start("poison-2", "poison"), { interval: 50 }).toBeDefined();
  const outcomes: Record<string, unknown> = {};
  for (const thread of [...INNOCENT, "poison", "poison-2"])
    await expect
      .poll(
        async () => {
          const run = await runOf(thread);
          outcomes[thread] = run;
          return run?.status;
        },
        { interval: 200 },
      )
      .toMatch(/success|error/);
  await servers.close();
  return outcomes;
}

function expectRight({ ada, bob, ...poisons }: Record<string, unknown>): void {
  const givenUp = { status: "error", error: { code: "crashed_too_often", details: { attempts: 5 } } };
  for (const poison of Object.values(poisons)) expect(poison).toMatchObject(givenUp);
  for (const innocent of [ada, bob]) expect(innocent).toMatchObject({ status: "success" });
}

describe("on sqlite, a run that kills the server, and another that starts later,", () => {
  test("fail after five deaths, and the runs next to them succeed", async () => {
    const servers = await serversOn({ store: "sqlite" }, 1);
    expectRight(await outcomesOn(servers));
  });
});

for (const { start, program } of USUAL_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).describe(
    `${program}: a run that kills each replica that takes it, and another that starts later,`,
    () => {
      test("fail after five deaths, and the runs next to them succeed", async () => {
        if (!shared) throw new Error("There was a store a moment ago.");
        const { kind } = shared;
        const config = { store: kind, [kind]: { url: await shared.database(), lease: "2s" } };
        expectRight(await outcomesOn(await serversOn(config, 2)));
      });
    },
  );
}
