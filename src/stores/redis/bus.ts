// A user's bus between processes. Who listens in this one hears what is said here at once, and what is said elsewhere
// by way of Redis.

import type { Owner } from "../../core/ids.ts";
import { type EventBus, UserEvent } from "../../core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import { LocalBus } from "../local-bus.ts";
import type { Connection } from "./connection.ts";
import type { Delivery } from "./delivery.ts";
import { heard } from "./heard.ts";
import type { Hub } from "./hub.ts";

export interface RedisBus extends EventBus {
  close(): void;
}

export function createBus(redis: Connection, hub: Hub, { channelOfUser }: Delivery): RedisBus {
  /** Whose message it is, so that nobody hears its own a second time. */
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
    const event = heard(UserEvent, text.slice(name.length));
    if (event) local.publish(owner, event);
  }
}
