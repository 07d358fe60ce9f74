// Runs agents in this process, on the engine that the server runs on: threads, quotas, takeovers and all.

import { LRUCache } from "lru-cache";
import type { BackendPool } from "../core/backend.ts";
import { AppError, hasCode } from "../core/errors.ts";
import { Id, newThreadId, type Owner } from "../core/ids.ts";
import type { RunRecord, Thread } from "../core/records.ts";
import type { TraceRecorder } from "../core/trace.ts";
import type { Logger } from "../lib/logger.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Quotas } from "../quotas/index.ts";
import { RunManager } from "../runs/manager.ts";
import type { AllStores } from "../stores/all-stores.ts";
import { createMemoryStores } from "../stores/memory/index.ts";
import { withOwnBackends } from "./backends.ts";
import { openPool, TO_CONSOLE } from "./defaults.ts";
import type { AgentHandle } from "./handle.ts";
import { messagesOf } from "./input.ts";
import type { LocalAgent, SpawnOptions, Whose } from "./local-agent.ts";
import type { RunResult } from "./result.ts";
import { localAgents } from "./source.ts";
import { type Begun, createHandle } from "./thread-handle.ts";

export interface RuntimeOptions {
  /** With their subagents; `spawn` adds others. */
  readonly agents?: readonly LocalAgent[];
  /** Whoever made them closes them. Default: in memory, gone with the runtime. */
  readonly stores?: AllStores;
  /** Whoever made it closes it. Default: those that agents describe, made on first use below `data_dir`. */
  readonly backends?: BackendPool;
  /** Default: `./data`. */
  readonly data_dir?: string;
  readonly quotas?: Quotas;
  readonly recorder?: TraceRecorder;
  /** Logs runs that fail and failures within runs. Default: errors and warnings go to the console. */
  readonly logger?: Logger;
  /** Runs at work at once; past it they wait. Default 256. */
  readonly max_runs?: number;
  /** How long `close` waits for runs, in ms. Default 10 s. */
  readonly grace_ms?: number;
}

export interface Runtime extends AsyncDisposable {
  /**
   * Begins to work on a thread: by the agent, or by one of its name. Throws `invalid_request` for an empty input, for a
   * name that there is not, and for a thread's id that is none; what else keeps the run from being accepted is what the
   * handle's `result` rejects with.
   */
  spawn(agent: LocalAgent | string, options?: SpawnOptions): AgentHandle;
  /** A handle on a thread that is there, at its newest run. */
  get(id: string, whose?: Whose): Promise<AgentHandle | undefined>;
  /** Whether a run of the thread is at work, or waits to be. */
  isRunning(id: string, whose?: Whose): Promise<boolean>;
  /** Those whose run was begun in this runtime and has not ended. */
  list(): AgentHandle[];
  /** Cancels what runs on the thread, and what waits there; resolves when it has ended. */
  shutdown(id: string, whose?: Whose): Promise<void>;
  shutdownAll(): Promise<void>;
  /** Takes an agent in, in place of the one of its name: runs that begin from now on are its. */
  replace(agent: LocalAgent): void;
  /** Waits a moment for what runs, then ends it, or leaves it to the next process where stores last. */
  close(): Promise<void>;
}

const RUNS_OF_A_THREAD = 100;
/** Failed runs whose cause is kept for their `result`. */
const MAX_CAUSES = 1000;

export function createRuntime(options: RuntimeOptions = {}): Runtime {
  const { stores = createMemoryStores(), logger = TO_CONSOLE, max_runs = 256, grace_ms = 10_000 } = options;
  const agents = localAgents();
  for (const agent of options.agents ?? []) agents.add(agent);
  const pool = options.backends ?? openPool({ dir: options.data_dir ?? "./data", stores, logger });
  const causes = new LRUCache<string, NonNullable<unknown>>({ max: MAX_CAUSES });
  const onFailed = (run: RunRecord, { cause }: AppError) => {
    if (cause !== undefined && cause !== null) causes.set(run.id, cause);
  };
  const runs = new RunManager({
    ...{ stores, agents, logger, onFailed, maxActive: max_runs },
    backends: withOwnBackends((name) => agents.get(name)?.backend, pool),
    ...omitUndefined({ quotas: options.quotas, recorder: options.recorder }),
  });
  const closing = new AbortController();
  const opened = runs.open();
  opened.catch(() => {}); // whoever starts a run is told
  const active = new Map<Promise<RunResult>, AgentHandle>();
  let closed: Promise<void> | undefined;

  const onBegin = (handle: AgentHandle, result: Promise<RunResult>) => {
    active.set(result, handle);
    const over = () => void active.delete(result);
    result.then(over, over);
  };
  const attach = async (owner: Owner, { id, agent = "" }: Thread): Promise<AgentHandle> => {
    const [run] = (await stores.runs.list(owner, id, { limit: 1 })).items;
    return createHandle(services, { id, agent, owner, prepared: opened, ...omitUndefined({ run }) }).handle;
  };
  const services = { runs, stores, causes, logger, closing: closing.signal, onBegin, attach };

  /** Every run of a thread that has not ended. */
  const shutdown = async (owner: Owner, id: string): Promise<void> => {
    const { items } = await runs.list(owner, id, { limit: RUNS_OF_A_THREAD });
    for (const run of items.filter(({ status }) => status === "pending" || status === "running")) {
      const stopped = await runs.stop(owner, id, run.id, "cancel").catch((error: unknown) => {
        if (!hasCode(error, "run_not_active")) throw error;
      });
      if (stopped) await runs.settled(owner, stopped, closing.signal);
    }
  };

  const runtime: Runtime = {
    spawn(agent, { input, thread: id = newThreadId(), signal, client_tools, ...spawning } = {}) {
      assertId(id);
      const messages = input === undefined ? undefined : messagesOf(input);
      if (typeof agent !== "string") agents.add(agent);
      const { name } = agents.find(typeof agent === "string" ? agent : agent.name);
      const { tenant, user, ...beginning } = spawning;
      const owner = ownerOf({ ...omitUndefined({ tenant, user }) });
      const prepared = messages ? opened : opened.then(() => createThread(stores, owner, id));
      const begun = createHandle(services, { id, agent: name, owner, prepared });
      if (messages)
        begun.begin({
          messages,
          ...omitUndefined({ ...beginning, tools: client_tools && [...client_tools] }),
        });
      if (signal) cancelWith(signal, begun);
      return begun.handle;
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

function cancelWith(signal: AbortSignal, { handle }: Begun): void {
  const cancel = () => void handle.cancel().catch(() => {});
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  const over = () => signal.removeEventListener("abort", cancel);
  handle.result.then(over, over);
}
