// Queues the calls to one server. Limits the number of running calls, running calls per user, and waiting calls. Calls run
// in order of arrival, but when a user is at the limit, other users' calls go first.

import type { Owner } from "../../../protocol/ids.ts";
import { McpFailure } from "./reporting.ts";

const MAX_AT_ONCE = 32;
const MAX_OF_ONE = 8;
const MAX_WAITING = 256;
const MAX_WAITING_OF_ONE = 64;

export interface CallQueue {
  /**
   * Resolves when the call may run. The result is a function that ends the call. Throws an `McpFailure` when
   * too many calls wait, and the signal's reason when the signal aborts.
   */
  take(owner: Owner, signal: AbortSignal): Promise<() => void>;
  /** Pauses new calls until the returned function is called. Running calls continue. */
  hold(): () => void;
  /** Resolves when no call is running. */
  over(): Promise<void>;
}

interface QueuedCall {
  readonly user: string;
  go(): void;
}

export function createCallQueue(): CallQueue {
  const running = new Map<string, number>();
  const line = waitingLine();
  let taken = 0;
  let holds = 0;
  let whenOver: (() => void)[] = [];

  const mayGo = (user: string) => holds === 0 && taken < MAX_AT_ONCE && (running.get(user) ?? 0) < MAX_OF_ONE;
  const next = () => {
    for (;;) {
      const first = line.take(mayGo);
      if (!first) return;
      start(first.user);
      first.go();
    }
  };
  const start = (user: string) => {
    taken++;
    running.set(user, (running.get(user) ?? 0) + 1);
  };
  const end = (user: string) => {
    taken--;
    const left = (running.get(user) ?? 1) - 1;
    if (left === 0) running.delete(user);
    else running.set(user, left);
    if (taken === 0) for (const resolve of whenOver.splice(0)) resolve();
    next();
  };

  return {
    async take(owner, signal) {
      signal.throwIfAborted();
      const user = JSON.stringify([owner.tenant, owner.user]);
      if (mayGo(user)) start(user);
      else await line.join(user, signal);
      let isOver = false;
      return () => {
        if (!isOver) end(user);
        isOver = true;
      };
    },

    hold() {
      holds++;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        holds--;
        next();
      };
    },

    over() {
      if (taken === 0) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      whenOver = [...whenOver, resolve];
      return promise;
    },
  };
}

/** Creates the list of waiting calls, in order of arrival. */
function waitingLine() {
  let waiting: readonly QueuedCall[] = [];
  const leave = (call: QueuedCall) => {
    waiting = waiting.filter((each) => each !== call);
  };
  return {
    /** Removes and returns the first call that may run. */
    take(mayGo: (user: string) => boolean): QueuedCall | undefined {
      const first = waiting.find(({ user }) => mayGo(user));
      if (first) leave(first);
      return first;
    },

    /**
     * Resolves when the call may run. Throws the signal's reason when it aborts, and an `McpFailure` when too
     * many calls wait.
     */
    async join(user: string, signal: AbortSignal): Promise<void> {
      const own = waiting.filter((each) => each.user === user).length;
      if (waiting.length >= MAX_WAITING || own >= MAX_WAITING_OF_ONE)
        throw new McpFailure("answered", "has too many waiting calls");
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => {
        leave(call);
        reject(signal.reason);
      };
      const call: QueuedCall = {
        user,
        go() {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      waiting = [...waiting, call];
      await promise;
    },
  };
}
