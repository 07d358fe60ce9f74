// Runs without a server: an engine on stores that a test may bend where it needs to.

import { onTestFinished } from "vitest";
import type { Hook } from "../../../src/agent/core/hook.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import { newThreadId } from "../../../src/agent/core/new-ids.ts";
import type { RunRecord, RunRequest } from "../../../src/agent/core/records.ts";
import type { RunStore, Stores } from "../../../src/agent/core/stores.ts";
import type { Tool } from "../../../src/agent/core/tool.ts";
import { type Script, scriptedModel, type Turn } from "../../../src/agent/models/scripted.ts";
import type { Quotas } from "../../../src/engine/quotas/index.ts";
import { settledRun } from "../../../src/engine/runs/control.ts";
import type { Runs } from "../../../src/engine/runs/executor.ts";
import { createEngine, type Engine } from "../../../src/engine/runs/index.ts";
import type { Restoration } from "../../../src/engine/runs/restored-calls.ts";
import type { Agents, RunServices } from "../../../src/engine/runs/services.ts";
import { type RunCommand, startRun } from "../../../src/engine/runs/start.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { omitUndefined } from "../../../src/lib/omit-undefined.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import type { InterruptPolicy } from "../../../src/protocol/interrupt.ts";
import { newPool } from "../../support/pool.ts";
import { temporaryFolder } from "../../support/server.ts";

/** The agent `helper`, as it is found. */
export const DEFINITION = {
  ...{ name: "helper", model: "scripted:test", system: [], hooks: {}, context_window: 1000 },
  ...{ subagents: [], max_delegation_depth: 3, max_iterations: 25, tools: [] },
};

interface Managed {
  readonly runs: Engine;
  readonly agents: Agents;
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
  readonly hasSeveralTenants?: boolean;
  readonly interrupts?: InterruptPolicy;
  readonly quotas?: Quotas;
  readonly restoration?: Restoration;
  /** In place of what finds the agent. */
  readonly agents?: Partial<Agents>;
  readonly beforeEnd?: RunServices["beforeEnd"];
}

/** Closed, with the stores, when the test has finished. Not open yet. */
export function managed(stores: Stores, options: ManagedOptions = {}): Managed {
  const { script = () => ({ say: "ok" }), tools = [], hooks = [], maxActive = 256, interrupts } = options;
  const model = scriptedModel(script);
  const agent = {
    ...{ name: "helper", model, system: [], tools, hooks, maxIterations: 25 },
    ...omitUndefined({ interrupts }),
  };
  const build: Agents["build"] = async (_definition, _services, { model: name }) =>
    name === undefined ? agent : { ...agent, model: { ...model, name } };
  const errors: string[] = [];
  const agents: Agents = {
    find: () => DEFINITION,
    checkModel() {},
    isReserved: () => false,
    build,
    ...options.agents,
  };
  const runs = createEngine({
    ...{ stores, maxActive, backends: newPool({ dataDir: "/nonexistent" }) },
    agents,
    ...omitUndefined({
      hasSeveralTenants: options.hasSeveralTenants,
      quotas: options.quotas,
      restoration: options.restoration,
      beforeEnd: options.beforeEnd,
    }),
    logger: { info() {}, warn() {}, error: (_details, message) => void errors.push(message) },
  });
  onTestFinished(async () => {
    await runs.close(0);
    await stores.close();
  });
  const start = (owner: Owner, input = "go", thread_id = newThreadId()) =>
    startRun(runs, owner, command(thread_id, input));
  return { runs, agents, start, errors };
}

/** A run that says `input`. */
export const command = (
  thread_id: string,
  input: string,
  { model, settings = {} }: Partial<Pick<RunRequest, "model" | "settings">> = {},
): RunCommand => ({
  thread_id,
  request: { input: [userMessage(input)], settings, ...omitUndefined({ model }) },
  metadata: {},
  on_busy: "reject",
});

export const settledOf = (
  runs: Runs,
  owner: Owner,
  { id: run_id, thread_id }: Pick<RunRecord, "id" | "thread_id">,
  signal = AbortSignal.timeout(60_000),
) => settledRun(runs, { owner, thread_id, run_id }, signal);

/** `stores` with other methods of runs. */
export const bent = (stores: Stores, runs: Partial<RunStore>): Stores => ({
  ...stores,
  runs: { ...stores.runs, ...runs },
});

/** In a folder of their own. */
export async function sqliteStores(more: { now?: () => number; leaseMs?: number } = {}): Promise<Stores> {
  return createSqliteStores({ dataDir: await temporaryFolder(), ...more });
}
