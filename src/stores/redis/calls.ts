// What processes ask of each other, whoever of them executes a run: at most once, by way of Redis. The one that asks
// hears itself at once.

import { z } from "zod";
import type { RunCall } from "../../core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import { Calls } from "../calls.ts";
import type { Connection } from "./connection.ts";
import type { Delivery } from "./delivery.ts";
import { heard } from "./heard.ts";
import type { Hub } from "./hub.ts";

const Call: z.ZodType<RunCall> = z.discriminatedUnion("call", [
  z.object({ call: z.literal("stop"), run_id: z.string(), mode: z.enum(["cancel", "interrupt"]) }),
  z.object({ call: z.literal("waiting") }),
]);

const WAITING: RunCall = { call: "waiting" };

export interface RedisCalls {
  /** Asks everybody. Waits for nothing. */
  say(call: RunCall): void;
  /** Says that there are runs that nobody executes. */
  waiting(): void;
  listen(listener: (call: RunCall) => void): void;
  close(): void;
}

export function createCalls(redis: Connection, hub: Hub, { channelOfCalls }: Delivery): RedisCalls {
  /** Whose message it is, so that nobody hears its own a second time. */
  const name = randomId();
  const local = new Calls();

  const calls: RedisCalls = {
    say(call) {
      redis.tell(channelOfCalls, name + JSON.stringify(call));
      local.say(call);
    },
    waiting: () => calls.say(WAITING),
    listen(listener) {
      local.listen(listener);
      // What was missed may have been this. A run that was to stop hears of it when its lease is renewed.
      void hub.join(channelOfCalls, { onMessage: hear, onGap: () => local.say(WAITING) });
    },
    close: () => local.close(),
  };
  return calls;

  function hear(text: string): void {
    const call = text.startsWith(name) ? undefined : heard(Call, text.slice(name.length));
    if (call) local.say(call);
  }
}
