// What runs say, as it comes on their channels.

import type { RunKey } from "../../core/stores.ts";
import type { RunFeed } from "../shared/live-tails.ts";
import { threadTag } from "./keys.ts";
import { entriesOfMessage, epochOf, lastSeqOf } from "./row-format.ts";
import type { Channels, Subscriber } from "./subscriber.ts";

export function runFeed(hub: Subscriber, delivery: Channels): RunFeed {
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
