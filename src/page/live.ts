// A thread, which is read once from the server and then followed. One stream covers all of its runs, including those of
// other clients.

import type { ThreadView } from "../client/cells.ts";
import { ConnectionLost, ProblemError, type Thread, type ThreadUsage } from "../client/client.ts";
import { createFold } from "../client/fold.ts";
import { onChange } from "./changes.ts";
import { touch } from "./frame.ts";
import { queuedMessage, saveQueued } from "./outbox.ts";
import { client, clientWith, messageOf } from "./session.ts";

/** A message that the server has accepted but the agent has not read. */
export interface QueuedMessage {
  /** The id of the steering message, or of the queued run. */
  readonly id: string;
  readonly as: "steering" | "queued";
  /** The text. Undefined if the message was written elsewhere. */
  readonly text?: string | undefined;
  /** True if the message has attachments, which the page does not keep. */
  readonly hasFiles?: boolean | undefined;
}

export interface LiveThread {
  readonly page: ThreadView;
  state: "loading" | "ready" | "missing" | "failed";
  problem?: string;
  /** `asleep`: the tab is hidden and its stream is closed. */
  connection: "connecting" | "live" | "reconnecting" | "asleep";
  info?: Thread;
  /** The usage of the runs that have ended. */
  usage?: ThreadUsage;
  waiting: readonly QueuedMessage[];
  /** The run that the user asked to stop after its current step. */
  stopping?: string | undefined;
}

export interface OpenThread {
  readonly live: LiveThread;
  /** Reads the thread again and follows it from that state. */
  again(): void;
  /** Runs an action that deletes messages. Shows no events during the action, then reads the thread again. */
  rewind<T>(work: () => Promise<T>): Promise<T>;
  wait(message: QueuedMessage): void;
  close(): void;
}

/** The time after which a hidden tab closes its stream, in ms. */
const HIDDEN_MS = 10_000;
const RETRY_MS = 2_000;
/** The number of recent runs to read, including queued runs. */
const NEWEST_RUNS = 20;

/** Opens a thread. The caller closes it. */
export function openThread(id: string): OpenThread {
  const { page, apply, begin } = createFold({ touch });
  const live: LiveThread = { page, state: "loading", connection: "connecting", waiting: [] };
  const change = (more: Partial<LiveThread>) => {
    Object.assign(live, more);
    touch(live);
  };
  const ending = new AbortController();
  let stream = new AbortController();
  let cursor: string | undefined;

  async function read(signal: AbortSignal): Promise<void> {
    const [state, info, { items: runs }, usage] = await Promise.all([
      client.threads.state(id, signal),
      client.threads.get(id, signal),
      client.runs.of(id, { limit: NEWEST_RUNS }, signal),
      client.threads.usage(id, signal),
    ]);
    begin({ state, run: runs.find(({ status }) => status !== "pending") });
    const queued = runs.filter(({ status }) => status === "pending").reverse();
    const known = new Map(live.waiting.map((each) => [each.id, each]));
    const waiting = queued.map(
      ({ id }) => known.get(id) ?? { id, as: "queued" as const, ...queuedMessage(id) },
    );
    change({ state: "ready", info, usage, waiting });
  }

  /** Reads the thread. Retries until the server responds. */
  async function readPatiently(signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        return await read(signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ConnectionLost)) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** Reads the thread once the stream is connected, so no event is missed. */
  async function follow(): Promise<void> {
    stream = new AbortController();
    const signal = AbortSignal.any([ending.signal, stream.signal]);
    const connected = Promise.withResolvers<void>();
    const following = clientWith({
      onConnection(connection) {
        change({ connection });
        if (connection === "live") connected.resolve();
      },
    });
    let next = cursor;
    let isRead = cursor === undefined ? connected.promise.then(() => readPatiently(signal)) : undefined;
    isRead?.catch((error) => failed(error, signal));
    const onReset = () => {
      isRead = readPatiently(signal);
      isRead.catch((error) => failed(error, signal));
    };
    const onCursor = (at: string) => {
      next = at;
    };
    try {
      for await (const event of following.follow(id, { after: cursor, onCursor, onReset }, signal)) {
        if (isRead) await isRead;
        isRead = undefined;
        apply(event);
        cursor = next;
        noticed(event);
      }
    } catch (error) {
      failed(error, signal);
    }
  }

  function failed(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    stream.abort();
    const isMissing = error instanceof ProblemError && error.status === 404;
    change({ state: isMissing ? "missing" : "failed", problem: messageOf(error) });
  }

  function noticed(event: Parameters<typeof apply>[0]): void {
    if ("path" in event && event.path) return;
    const arrived =
      event.event === "on_message" ? event.data.message.id : event.event === "run_start" && event.run_id;
    if (arrived) saveQueued(arrived, undefined);
    if (arrived && live.waiting.some((each) => each.id === arrived))
      change({ waiting: live.waiting.filter((each) => each.id !== arrived) });
    if (event.event === "done" || event.event === "error") void readHead();
  }

  /** Reads the data that the page shows above the messages. Ignores errors. */
  async function readHead(): Promise<void> {
    try {
      const [info, usage] = await Promise.all([
        client.threads.get(id, ending.signal),
        client.threads.usage(id, ending.signal),
      ]);
      page.run.tokens = page.run.isActive ? page.run.tokens : 0;
      change({ info, usage });
    } catch {}
  }

  function again(): void {
    stream.abort();
    cursor = undefined;
    void follow();
  }

  const forget = onChange((change) => {
    if (change.event !== "thread_changed" && change.event !== "run_started") return;
    if (change.data.thread_id !== id) return;
    if (live.state === "missing") return again();
    if (change.event === "run_started") return;
    if (change.data.change === "updated") void readHead();
    else if (change.data.change !== "created") again();
  });
  const endSleep = whileHidden(HIDDEN_MS, {
    sleep() {
      stream.abort();
      change({ connection: "asleep" });
    },
    wake() {
      if (live.state === "ready" || live.state === "loading") void follow();
    },
  });
  void follow();

  return {
    live,
    again,
    async rewind(work) {
      stream.abort();
      try {
        return await work();
      } finally {
        again();
      }
    },
    wait(message) {
      if (message.as === "queued") saveQueued(message.id, message);
      change({ waiting: [...live.waiting, message] });
    },
    close() {
      forget();
      endSleep();
      ending.abort();
    },
  };
}

/** Calls `sleep` when the tab has been hidden for `ms` milliseconds, and `wake` when it becomes visible after that. */
function whileHidden(ms: number, { sleep, wake }: { sleep: () => void; wake: () => void }): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isAsleep = false;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => {
        isAsleep = true;
        sleep();
      }, ms);
    } else if (isAsleep) {
      isAsleep = false;
      wake();
    }
  };
  document.addEventListener("visibilitychange", look);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}
