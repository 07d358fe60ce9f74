// Runs without a server: a manager on stores that a test may bend where it needs to.

import { afterAll, describe, onTestFinished } from "vitest";
import type { Hook } from "../../src/core/hook.ts";
import { newThreadId, type Owner } from "../../src/core/ids.ts";
import type { InterruptPolicy } from "../../src/core/interrupt.ts";
import { userMessage } from "../../src/core/message.ts";
import type { RunRecord } from "../../src/core/records.ts";
import type { RunStore, Stores } from "../../src/core/stores.ts";
import type { Tool } from "../../src/core/tool.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import { type Script, scriptedModel, type Turn } from "../../src/models/scripted.ts";
import { RunManager } from "../../src/runs/manager.ts";
import type { AgentSource } from "../../src/runs/services.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";
import { createRedisStores } from "../../src/stores/redis/index.ts";
import { createSqliteStores } from "../../src/stores/sqlite/index.ts";
import { needing } from "../support/needing.ts";
import { newPool } from "../support/pool.ts";
import { startRedis } from "../support/redis.ts";
import { temporaryFolder } from "../support/server.ts";

interface Managed {
  readonly runs: RunManager;
  readonly agents: AgentSource;
  /** Starts a run of `owner` that says `input`, on a thread of its own unless it is named. */
  start(owner: Owner, input?: string, threadId?: string): Promise<RunRecord>;
  /** The errors that were logged. */
  readonly errors: string[];
}

interface ManagedOptions {
  readonly script?: readonly Turn[] | Script;
  readonly tools?: readonly Tool[];
  readonly hooks?: readonly Hook[];
  readonly maxActive?: number;
  readonly interrupts?: InterruptPolicy;
  /** In place of what finds the agent. */
  readonly agents?: Partial<AgentSource>;
}

/** Closed, with the stores, when the test has finished. Not open yet. */
export function managed(stores: Stores, options: ManagedOptions = {}): Managed {
  const { script = [{ say: "ok" }], tools = [], hooks = [], maxActive = 256, interrupts } = options;
  const model = scriptedModel(script);
  const definition = {
    ...{ name: "helper", model: "scripted:test", system: [], hooks: {}, context_window: 1000 },
    ...{ subagents: [], max_delegation_depth: 3, max_iterations: 25, tools: [] },
  };
  const agent = {
    name: "helper",
    model,
    system: [],
    tools,
    hooks,
    maxIterations: 25,
    ...omitUndefined({ interrupts }),
  };
  const build: AgentSource["build"] = (_definition, _services, { model: name }) =>
    name === undefined ? agent : { ...agent, model: { ...model, name } };
  const errors: string[] = [];
  const agents: AgentSource = {
    find: () => definition,
    checkModel() {},
    isReserved: () => false,
    build,
    ...options.agents,
  };
  const runs = new RunManager({
    ...{ stores, maxActive, backends: newPool({ dataDir: "/nonexistent" }) },
    agents,
    logger: { info() {}, warn() {}, error: (_details, message) => void errors.push(message) },
  });
  onTestFinished(async () => {
    await runs.close(0);
    await stores.close();
  });
  const start = (owner: Owner, input = "go", thread_id = newThreadId()) =>
    runs.start(owner, {
      ...{ thread_id, messages: [userMessage(input)], settings: {}, metadata: {}, on_busy: "reject" },
    });
  return { runs, agents, start, errors };
}

/** `stores` with other methods of runs. */
export const bent = (stores: Stores, runs: Partial<RunStore>): Stores => ({
  ...stores,
  runs: { ...stores.runs, ...runs },
});

/** In a folder of their own. */
export async function sqliteStores(more: { now?: () => number; leaseMs?: number } = {}): Promise<Stores> {
  return createSqliteStores({ dataDir: await temporaryFolder(), ...more });
}

/** Promises what `tests` do of each kind of store. */
export async function describeEveryStore(
  name: string,
  tests: (open: () => Promise<Stores>) => void,
): Promise<void> {
  const redis = await startRedis("--databases", "100");
  afterAll(() => redis?.close());
  let databases = 0;
  const openRedis = () => createRedisStores({ url: `${redis?.url}/${databases++}`, leaseMs: 1000 });
  describe(`${name}, in memory`, () => tests(async () => createMemoryStores()));
  describe(`${name}, in the database`, () => tests(() => sqliteStores()));
  needing(redis, "redis-server").describe(`${name}, in Redis`, () => tests(openRedis));
}
