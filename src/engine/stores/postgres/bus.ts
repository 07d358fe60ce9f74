// The users' bus, the control channel between processes, and news of runs. Listeners in this process are called at
// once. PostgreSQL delivers to listeners in other processes, at most once.

import { z } from "zod";
import type { EventBus } from "../../../agent/core/bus.ts";
import type { ControlMessage, RunKey } from "../../../agent/core/stores.ts";
import { ControlChannel, LocalBus } from "../local-bus.ts";
import { OwnerMap } from "../owner-map.ts";
import { Call, parsed, ToldEvent, WAITING } from "../shared/bus-messages.ts";
import type { RunFeed, RunListener } from "../shared/live-tails.ts";
import type { Notifications } from "./notifications.ts";

/** The kinds of notifications: events of users, calls to executors, news of runs. */
const [USERS, CALLS, RUNS] = ["u", "c", "r"];

const Notification = z.object({
  owner: z.object({ tenant: z.string(), user: z.string() }),
  event: ToldEvent,
});

export interface PostgresBus extends EventBus {
  close(): void;
}

export function createBus(notifications: Notifications): PostgresBus {
  const local = new LocalBus();
  notifications.listen(USERS, {
    onMessage(text) {
      const told = parsed(Notification, text);
      if (told) local.publish(told.owner, told.event);
    },
    onGap() {},
  });

  return {
    publish(owner, event) {
      local.publish(owner, event);
      notifications.tell(USERS, JSON.stringify({ owner, event }));
    },
    announce: (event) => local.announce(event),
    subscribe: (owner, signal) => local.subscribe(owner, signal),
    close: () => local.close(),
  };
}

export interface PostgresCalls {
  /** Publishes to all processes. Does not wait. */
  publish(call: ControlMessage): void;
  subscribe(listener: (call: ControlMessage) => void): void;
  close(): void;
}

export function createCalls(notifications: Notifications): PostgresCalls {
  const local = new ControlChannel();
  notifications.listen(CALLS, {
    onMessage(text) {
      const call = parsed(Call, text);
      if (call) local.publish(call);
    },
    // This may have been the missed message. A run that was asked to stop notices the request when its lease is
    // renewed.
    onGap: () => local.publish(WAITING),
  });

  return {
    publish(call) {
      notifications.tell(CALLS, JSON.stringify(call));
      local.publish(call);
    },
    subscribe: (listener) => local.subscribe(listener),
    close: () => local.close(),
  };
}

/** News about a run's log: its last entry, its epoch, and whether it has ended. */
export interface RunNews {
  readonly run: RunKey;
  readonly last: number;
  readonly epoch: number;
  readonly ends: boolean;
}

const News = z.array(
  z.tuple([z.string(), z.string(), z.string(), z.string(), z.number(), z.number(), z.boolean()], z.unknown()),
);

export interface RunNewsFeed extends RunFeed {
  readonly channel: string;
  /** Returns the notification payloads for other processes, to send with the statement that writes the news. */
  payloads(news: readonly RunNews[]): string[];
}

export function createRunFeed(notifications: Notifications): RunNewsFeed {
  const listeners = new OwnerMap<RunListener>();
  const place = ({ thread_id, run_id }: RunKey) => `${thread_id}/${run_id}`;
  notifications.listen(RUNS, {
    onMessage(text) {
      for (const [tenant, user, thread_id, run_id, last, epoch, ends] of parsed(News, text) ?? []) {
        const run = { owner: { tenant, user }, thread_id, run_id };
        const listener = listeners.get(run.owner, place(run));
        if (listener?.wants(last, epoch)) listener.onNews({ last, epoch, ends });
      }
    },
    onGap() {
      for (const listener of [...listeners.values()]) listener.onGap();
    },
  });

  return {
    channel: notifications.channel,
    payloads(news) {
      const told = news.map(({ run: { owner, thread_id, run_id }, last, epoch, ends }) => [
        ...[owner.tenant, owner.user, thread_id, run_id],
        ...[last, epoch, ends],
      ]);
      return notifications.payloads(RUNS, JSON.stringify(told));
    },
    async join(run, listener) {
      listeners.set(run.owner, place(run), listener);
    },
    leave: (run) => listeners.delete(run.owner, place(run)),
  };
}
