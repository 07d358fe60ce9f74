// A thread as a store for any view library. `subscribe` and `getSnapshot` work with React's `useSyncExternalStore`.

import type { AgentCell, Cell, Lane, RunNow, ThreadView, ToolCell } from "./cells.ts";
import { type Client, ConnectionLost, ProblemError, type RunOptions, type Sent } from "./client.ts";
import { createFold } from "./fold.ts";
import { type ConnectionState, pause } from "./retries.ts";
import type { Answer, Part, Run, UserEvent } from "./wire.ts";

export * from "./cells.ts";
export { createFold, type Fold, type FoldOptions, type History } from "./fold.ts";

/** A snapshot of a thread. Unchanged parts are the same objects as in the previous snapshot. */
export interface ThreadSnapshot extends Readonly<Pick<ThreadView, "todos" | "asks">> {
  /**
   * `missing`: the thread does not exist until `send` or another client creates it. `failed`: the store stopped
   * following the thread because of `problem`.
   */
  readonly state: "loading" | "ready" | "missing" | "failed";
  readonly problem?: Error;
  readonly connection: "connecting" | ConnectionState;
  readonly run: Readonly<RunNow>;
  /** Messages, calls and notes, oldest first. */
  readonly cells: readonly Cell[];
}

export interface ThreadStore {
  /**
   * Follows the thread while it has at least one listener. Calls `listener` at most 60 times a second. Returns a function
   * that unsubscribes.
   */
  subscribe(listener: () => void): () => void;
  getSnapshot(): ThreadSnapshot;
  /** Starts a run with a message, like `client.start`. */
  send(message: string | RunOptions): Promise<Run>;
  /** Adds a message to the run in progress. The run's next model call includes it. Throws `run_not_active`. */
  steer(content: string | readonly Part[]): Promise<void>;
  /** Stops the most recent run, like `client.stop`. Throws `run_not_active`. */
  stop(mode?: "cancel" | "interrupt"): Promise<Run>;
  /**
   * Answers open questions of the thread. Throws `interrupt_closed` if the first answer does not belong to an open
   * question.
   */
  answer(...answers: readonly Sent<Answer>[]): Promise<Run>;
}

/**
 * The minimum time between two calls of the listeners. Calling the listeners after every event would be too frequent.
 */
const FRAME_MS = 16;
/** The number of recent runs to read. They include queued runs. */
const NEWEST_RUNS = 20;
/** The pause between two attempts to read the thread, in milliseconds. */
const REREAD_MS = 1_000;

/** Creates a store. Opens no connection before the first `subscribe`. */
export function openThread(client: Client, threadId: string): ThreadStore {
  const listeners = new Set<() => void>();
  const view = createView(() => {
    for (const listener of listeners) listener();
  });
  const thread: FollowedThread = { client, threadId, view, cursor: undefined, onCreated: () => {} };
  const { page } = view.fold;
  let following: AbortController | undefined;

  function newest(): string {
    if (page.run.id !== undefined) return page.run.id;
    throw new ProblemError(409, { code: "run_not_active", detail: "The thread has no run." });
  }

  return {
    subscribe(listener) {
      const own = () => listener();
      listeners.add(own);
      if (!following) {
        following = new AbortController();
        void follow(thread, following.signal);
      }
      return () => {
        listeners.delete(own);
        if (listeners.size > 0) return;
        following?.abort();
        following = undefined;
      };
    },
    getSnapshot: view.snapshot,
    async send(message) {
      const run = await client.start(threadId, typeof message === "string" ? { input: message } : message);
      thread.onCreated();
      return run;
    },
    async steer(content) {
      await client.steer(threadId, newest(), content);
    },
    stop: async (mode) => client.stop(threadId, newest(), mode),
    async answer(...answers) {
      const asked = page.asks.find(({ id }) => id === answers[0]?.id);
      if (asked) return client.answer(threadId, asked.run_id, answers);
      throw new ProblemError(409, { code: "interrupt_closed", detail: "This question is no longer open." });
    },
  };
}

type About = Pick<ThreadSnapshot, "state" | "connection"> & { problem?: Error };

/** Owns the data of a thread that a page shows. Calls `tell` after changes, at most once per frame. */
function createView(tell: () => void) {
  const dirty = new Set<object>();
  const copied = createCopies((what) => dirty.has(what));
  const fold = createFold({ touch });
  const about: About = { state: "loading", connection: "connecting" };
  let snapshot: ThreadSnapshot = look();
  let isDue = false;

  function touch(what: object): void {
    dirty.add(what);
    if (!isDue) setTimeout(draw, FRAME_MS);
    isDue = true;
  }

  function draw(): void {
    isDue = false;
    snapshot = look();
    dirty.clear();
    tell();
  }

  function look(): ThreadSnapshot {
    const { todos, asks, run, lane } = fold.page;
    return { ...about, todos, asks, run: copied.run(run), cells: copied.lane(lane).cells };
  }

  return {
    fold,
    snapshot: () => snapshot,
    change(more: Partial<About>): void {
      Object.assign(about, more);
      touch(about);
    },
  };
}

/** A thread that the store follows while it has listeners. */
interface FollowedThread {
  readonly client: Client;
  readonly threadId: string;
  readonly view: ReturnType<typeof createView>;
  /** The cursor of the last event that the page shows. */
  cursor: string | undefined;
  /** Called by `send` after the thread was created. Does nothing unless `untilCreated` is waiting. */
  onCreated: () => void;
}

/** Reads the thread from the server and starts the fold with it. Retries until the server responds. */
async function read({ client, threadId, view }: FollowedThread, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      const [state, { items }] = await Promise.all([
        client.threads.state(threadId, signal),
        client.runs.of(threadId, { limit: NEWEST_RUNS }, signal),
      ]);
      view.fold.begin({ state, run: items.find(({ status }) => status !== "pending") });
      return view.change({ state: "ready" });
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      await pause(REREAD_MS, signal);
    }
  }
}

/**
 * Follows the thread until the stream fails. Reads the thread only after the stream is connected, so no event is lost
 * in between.
 */
async function followOnce(thread: FollowedThread, signal: AbortSignal): Promise<void> {
  const { client, threadId, view } = thread;
  const broken = new AbortController();
  const end = () => broken.abort(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  let reading: Promise<void> | undefined;
  const reread = () => {
    reading = read(thread, broken.signal);
    reading.catch((error: unknown) => broken.abort(error));
  };
  let next = thread.cursor;
  const options = {
    after: thread.cursor,
    onReset: reread,
    onCursor: (at: string) => {
      next = at;
    },
    onConnection: (connection: ConnectionState) => {
      if (connection === "live" && thread.cursor === undefined) reread();
      view.change({ connection });
    },
  };
  try {
    for await (const event of client.follow(threadId, options, broken.signal)) {
      await reading;
      view.fold.apply(event);
      thread.cursor = next;
    }
  } finally {
    signal.removeEventListener("abort", end);
    broken.abort();
  }
}

async function follow(thread: FollowedThread, signal: AbortSignal): Promise<void> {
  const { threadId, view } = thread;
  while (!signal.aborted) {
    try {
      await followOnce(thread, signal).catch(async (error: unknown) => {
        if (signal.aborted || !isMissing(error)) throw error;
        thread.cursor = undefined;
        view.fold.begin({ state: { thread_id: threadId, messages: [], status: "idle", version: 0 } });
        view.change({ state: "missing" });
        await untilCreated(thread, signal);
      });
    } catch (error) {
      if (!signal.aborted)
        view.change({ state: "failed", problem: error instanceof Error ? error : new Error(String(error)) });
      return;
    }
  }
}

/**
 * Resolves when `send` or another client has created the thread. Checks whether the thread exists each time the stream
 * connects, because the server does not resend earlier changes.
 */
async function untilCreated(thread: FollowedThread, signal: AbortSignal): Promise<void> {
  const { client, threadId } = thread;
  const waiting = new AbortController();
  const end = () => waiting.abort();
  thread.onCreated = end;
  signal.addEventListener("abort", end, { once: true });
  const look = async () => {
    const isThere = client.threads.get(threadId, waiting.signal).then(
      () => true,
      (error) => !isMissing(error),
    );
    if (await isThere) end();
  };
  try {
    for await (const change of client.changes(waiting.signal, { onConnected: () => void look() }))
      if (isAbout(change, threadId)) return;
  } catch (error) {
    if (!waiting.signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
}

/** The first run of a thread creates the thread without a `thread_changed` event. */
const isAbout = ({ event, data }: UserEvent, threadId: string) =>
  (event === "thread_changed" || event === "run_started") && data.thread_id === threadId;

const isMissing = (error: unknown) => error instanceof ProblemError && error.status === 404;

/**
 * Copies the objects that the fold changes in place. An object gets a new copy only when it, or an object within it, has
 * changed.
 */
function createCopies(hasChanged: (what: object) => boolean) {
  const copies = new WeakMap<object, object>();

  /** `isOld` returns true when an object within the previous copy has changed. */
  function copy<T extends object>(what: T, make: () => T, isOld = (_before: T) => false): T {
    const before = copies.get(what) as T | undefined;
    if (before && !hasChanged(what) && !isOld(before)) return before;
    const made = make();
    copies.set(what, made);
    return made;
  }

  function lane(of: Lane): Lane {
    const cells = of.cells.map(cell);
    return copy(
      of,
      () => ({ cells }),
      (before) => !isSame(before.cells, cells),
    );
  }

  function cell(of: Cell): Cell {
    if (of.kind === "tool") return tool(of);
    return of.kind === "agent" ? agent(of) : copy(of, () => ({ ...of }));
  }

  function tool(of: ToolCell): ToolCell {
    const agents = of.agents.map(agent);
    const made = () => ({ ...of, agents, writing: { ...of.writing }, output: { ...of.output } });
    return copy(of, made, (before) => !isSame(before.agents, agents));
  }

  function agent(of: AgentCell): AgentCell {
    const below = lane(of.lane);
    return copy(
      of,
      () => ({ ...of, lane: below }),
      (before) => before.lane !== below,
    );
  }

  return { lane, run: (run: RunNow) => copy(run, () => ({ ...run })) };
}

const isSame = (before: readonly unknown[], after: readonly unknown[]) =>
  before.length === after.length && before.every((each, index) => each === after[index]);
