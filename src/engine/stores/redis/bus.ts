// The users' bus, the control channel between processes, and the channels of runs. Listeners in this process are called
// at once. Redis delivers to listeners in other processes, at most once.

import type { EventBus } from "../../../agent/core/bus.ts";
import type { ControlMessage, RunKey } from "../../../agent/core/stores.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ControlChannel, LocalBus } from "../local-bus.ts";
import { Call, parsed, ToldEvent, WAITING } from "../shared/bus-messages.ts";
import type { RunFeed } from "../shared/live-tails.ts";
import type { RedisConnection } from "./connection.ts";
import { threadTag } from "./keys.ts";
import { entriesOfMessage, epochOf, lastSeqOf } from "./row-format.ts";
import type { Channels, Subscriber } from "./subscriber.ts";

export interface RedisBus extends EventBus {
  close(): void;
}

export function createBus(redis: RedisConnection, hub: Subscriber, { channelOfUser }: Channels): RedisBus {
  /** Identifies the sender, so a process ignores its own messages. */
  const name = randomId();
  const local = new LocalBus((owner, isHeard) => {
    if (isHeard) void hub.join(channelOfUser(owner), { onMessage: (text) => hear(owner, text), onGap() {} });
    else hub.leave(channelOfUser(owner));
  });

  return {
    publish(owner, event) {
      local.publish(owner, event);
      redis.tell(channelOfUser(owner), name + JSON.stringify(event));
    },
    announce: (event) => local.announce(event),
    subscribe: (owner, signal) => local.subscribe(owner, signal),
    close: () => local.close(),
  };

  function hear(owner: Owner, text: string): void {
    if (text.startsWith(name)) return;
    const event = parsed(ToldEvent, text.slice(name.length));
    if (event) local.publish(owner, event);
  }
}

// Notifications between the processes that execute runs, sent through Redis, at most once. The sender's own listener is
// called at once.
export interface RedisCalls {
  /** Publishes to all processes. Does not wait. */
  publish(call: ControlMessage): void;
  /** Announces that runs are waiting to be executed. */
  waiting(): void;
  subscribe(listener: (call: ControlMessage) => void): void;
  close(): void;
}

export function createCalls(
  redis: RedisConnection,
  hub: Subscriber,
  { channelOfCalls }: Channels,
): RedisCalls {
  /** Identifies the sender, so a process ignores its own messages. */
  const name = randomId();
  const local = new ControlChannel();

  const calls: RedisCalls = {
    publish(call) {
      redis.tell(channelOfCalls, name + JSON.stringify(call));
      local.publish(call);
    },
    waiting: () => calls.publish(WAITING),
    subscribe(listener) {
      local.subscribe(listener);
      // This may have been the missed message. A run that was asked to stop notices it when its lease is renewed.
      void hub.join(channelOfCalls, { onMessage: hear, onGap: () => local.publish(WAITING) });
    },
    close: () => local.close(),
  };
  return calls;

  function hear(text: string): void {
    const call = text.startsWith(name) ? undefined : parsed(Call, text.slice(name.length));
    if (call) local.publish(call);
  }
}

/** Receives the events of runs from their channels. */
export function createRunFeed(hub: Subscriber, delivery: Channels): RunFeed {
  const channelOf = ({ owner, thread_id, run_id }: RunKey) =>
    delivery.channelOf(threadTag(owner, thread_id), run_id);

  return {
    join: (run, listener) =>
      hub.join(channelOf(run), {
        onMessage(message) {
          if (listener.wants(lastSeqOf(message), epochOf(message)))
            listener.onEntries(entriesOfMessage(message));
        },
        onGap: () => listener.onGap(),
      }),
    leave: (run) => hub.leave(channelOf(run)),
  };
}
