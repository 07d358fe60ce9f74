// Runs agents in this process on the server's engine, with the same threads, quotas and takeovers.

import { LRUCache } from "lru-cache";
import type { BackendPool } from "../../agent/core/backend.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { RunRecord, Thread } from "../../agent/core/records.ts";
import type { TaskBoard } from "../../agent/core/task-board.ts";
import type { TraceRecorder } from "../../agent/core/tool.ts";
import type { Quotas } from "../../engine/quotas/index.ts";
import { keyOf, newestRun, settledRun, stopRun } from "../../engine/runs/control.ts";
import { createEngine } from "../../engine/runs/index.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import { markFailures } from "../../engine/stores/mark-failures.ts";
import { createMemoryStores } from "../../engine/stores/memory/index.ts";
import type { Logger } from "../../lib/logger.ts";
import { atMost } from "../../lib/lru.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { Id, type Owner } from "../../protocol/ids.ts";
import { openPool, withOwnBackends } from "./backends.ts";
import { type AgentHandle, createHandle, type StartableHandle } from "./handle.ts";
import { messagesOf } from "./input.ts";
import type { LocalAgent, SpawnOptions, Whose } from "./local-agent.ts";
import { localAgents } from "./local-agents.ts";
import type { RunResult } from "./result.ts";

const TO_CONSOLE: Logger = {
  info() {},
  warn: (details, message) => console.warn(message, details),
  error: (details, message) => console.error(message, details),
};

export interface RuntimeOptions {
  /** The runtime's agents, with their subagents. `spawn` adds others. */
  readonly agents?: readonly LocalAgent[];
  /** Closed by the caller. Default: stores in memory, which are lost when the runtime closes. */
  readonly stores?: AllStores;
  /** Closed by the caller. Default: the backends that agents configure, created on first use below `data_dir`. */
  readonly backends?: BackendPool;
  /** The folder for files. Default: `./data`. */
  readonly data_dir?: string;
  readonly quotas?: Quotas;
  readonly recorder?: TraceRecorder;
  /** Replaces the built-in board for delegated tasks. */
  readonly tasks?: TaskBoard;
  /** Logs runs that fail, and failures within runs. Default: errors and warnings go to the console. */
  readonly logger?: Logger;
  /** The maximum number of runs at the same time. Further runs wait. Default: 500. */
  readonly max_runs?: number;
  /** The maximum time that `close` waits for runs, in ms. Default: 10,000. */
  readonly grace_ms?: number;
}

export interface Runtime extends AsyncDisposable {
  /**
   * Starts a run in a thread. `agent` is an agent or an agent's name. Throws `invalid_request` for an empty input, an
   * unknown name or an invalid thread id. If the run is refused for another reason, the handle's `result` rejects.
   */
  spawn<Output>(agent: LocalAgent<Output> | string, options?: SpawnOptions): AgentHandle<Output>;
  /** Returns a handle for an existing thread, at its newest run, or undefined if the thread does not exist. */
  get(id: string, whose?: Whose): Promise<AgentHandle | undefined>;
  /** Returns true if a run of the thread is active or queued. */
  isRunning(id: string, whose?: Whose): Promise<boolean>;
  /** Returns the handles whose run was started in this runtime and has not ended. */
  list(): AgentHandle[];
  /** Cancels the active and queued runs of the thread. Resolves when they have ended. */
  shutdown(id: string, whose?: Whose): Promise<void>;
  shutdownAll(): Promise<void>;
  /** Replaces the agent with the same name for runs that start from now on. */
  replace(agent: LocalAgent): void;
  /** Waits `grace_ms` for runs, then ends them. With durable stores, the next process continues them. */
  close(): Promise<void>;
}

const RUNS_OF_A_THREAD = 100;
/** The maximum number of failed runs whose cause is kept for their `result`. */
const MAX_CAUSES = 1000;

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const { logger = TO_CONSOLE, max_runs = 500, grace_ms = 10_000 } = options;
  const stores = markFailures(options.stores ?? createMemoryStores());
  const agents = localAgents();
  for (const agent of options.agents ?? []) agents.add(agent);
  const pool = options.backends ?? openPool({ dir: options.data_dir ?? "./data", stores, logger });
  const causes = new LRUCache<string, NonNullable<unknown>>(atMost(MAX_CAUSES));
  const onFailed = (run: RunRecord, { cause }: AppError) => {
    if (cause !== undefined && cause !== null) causes.set(run.id, cause);
  };
  const runs = createEngine({
    stores,
    agents,
    logger,
    onFailed,
    maxActive: max_runs,
    backends: withOwnBackends((name) => agents.get(name)?.backend, pool),
    ...omitUndefined({ quotas: options.quotas, recorder: options.recorder, tasks: options.tasks }),
  });
  const closing = new AbortController();
  const opened = runs.open();
  opened.catch(() => {}); // the start of a run reports the failure
  const active = new Map<Promise<RunResult>, AgentHandle>();
  let closed: Promise<void> | undefined;

  const onBegin = (handle: AgentHandle, result: Promise<RunResult>) => {
    active.set(result, handle);
    const over = () => void active.delete(result);
    result.then(over, over);
  };
  const attach = async (owner: Owner, { id, agent = "" }: Thread): Promise<AgentHandle> => {
    const run = await newestRun(stores.runs, owner, id);
    return createHandle(services, { id, agent, owner, prepared: opened, ...omitUndefined({ run }) }).handle;
  };
  const readOutput = (agent: string, value: unknown) => agents.get(agent)?.output?.parse(value) ?? value;
  const services = { runs, stores, causes, readOutput, logger, closing: closing.signal, onBegin, attach };

  /** Cancels every run of a thread that has not ended. */
  const shutdown = async (owner: Owner, id: string): Promise<void> => {
    const { items } = await stores.runs.list(owner, id, { limit: RUNS_OF_A_THREAD });
    for (const run of items.filter(({ status }) => status === "pending" || status === "running")) {
      const stopped = await stopRun(runs, keyOf(owner, run), "cancel").catch((error: unknown) => {
        if (!hasCode(error, "run_not_active")) throw error;
      });
      if (stopped) await settledRun(runs, keyOf(owner, stopped), closing.signal);
    }
  };

  const runtime: Runtime = {
    spawn<Output>(
      agent: LocalAgent<Output> | string,
      { input, thread: id = newThreadId(), signal, client_tools, ...spawning }: SpawnOptions = {},
    ) {
      assertId(id);
      const messages = input === undefined ? undefined : messagesOf(input);
      if (typeof agent !== "string") agents.add(agent);
      const { name } = agents.find(typeof agent === "string" ? agent : agent.name);
      const { tenant, user, ...beginning } = spawning;
      const owner = ownerOf({ ...omitUndefined({ tenant, user }) });
      const prepared = messages ? opened : opened.then(() => createThread(stores, owner, id));
      const startable = createHandle(services, { id, agent: name, owner, prepared });
      if (messages)
        startable.begin({
          messages,
          ...omitUndefined({ ...beginning, tools: client_tools && [...client_tools] }),
        });
      if (signal) cancelWith(signal, startable);
      // The handle converts results with the schema of this agent, so `Output` is their type.
      return startable.handle as AgentHandle<Output>;
    },
    async get(id, whose) {
      const owner = ownerOf(whose);
      const thread = await stores.threads.get(owner, id);
      return thread && attach(owner, thread);
    },
    isRunning: async (id, whose) => (await stores.threads.get(ownerOf(whose), id))?.status === "busy",
    list: () => [...new Set(active.values())],
    shutdown: (id, whose) => shutdown(ownerOf(whose), id),
    async shutdownAll() {
      const all = runtime.list();
      await Promise.all(all.map((handle) => handle.run().catch(() => undefined)));
      await Promise.all(all.map(({ owner, id }) => shutdown(owner, id)));
    },
    replace: (agent) => agents.replace(agent),
    close() {
      closed ??= close();
      return closed;
    },
    [Symbol.asyncDispose]: () => runtime.close(),
  };

  async function close(): Promise<void> {
    await opened.catch(() => {});
    await runs.close(grace_ms);
    closing.abort();
    if (!options.backends) await pool.close();
    if (!options.stores) await stores.close();
  }
  return runtime;
}

const ownerOf = ({ tenant = "default", user = "default" }: Whose = {}): Owner => ({ tenant, user });

function assertId(thread: string): void {
  const [issue] = Id.safeParse(thread).error?.issues ?? [];
  if (issue) throw new AppError("invalid_request", `thread: ${issue.message}`);
}

async function createThread({ threads }: AllStores, owner: Owner, id: string): Promise<void> {
  await threads.create(owner, { id, metadata: {} }).catch((error: unknown) => {
    if (!hasCode(error, "already_exists")) throw error;
  });
}

function cancelWith(signal: AbortSignal, { handle }: StartableHandle): void {
  const cancel = () => void handle.cancel().catch(() => {});
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  const over = () => signal.removeEventListener("abort", cancel);
  handle.result.then(over, over);
}
