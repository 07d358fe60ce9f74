// Where scripts deliver what they have written.

import type { Owner } from "../../core/ids.ts";
import type { Clients } from "./client.ts";
import { callChannel, runChannel, userChannel } from "./keys.ts";

export interface Delivery {
  readonly isCluster: boolean;
  /** The command. In a cluster a message stays with the server that has the channel's place. */
  readonly publish: "PUBLISH" | "SPUBLISH";
  channelOf(thread: string, runId: string): string;
  channelOfUser(owner: Owner): string;
  /** What is asked of all processes comes here. */
  readonly channelOfCalls: string;
}

export function createDelivery({ isCluster, database }: Clients): Delivery {
  return {
    isCluster,
    publish: isCluster ? "SPUBLISH" : "PUBLISH",
    channelOf: (thread, runId) => runChannel(database, thread, runId),
    channelOfUser: (owner) => userChannel(database, owner),
    channelOfCalls: callChannel(database),
  };
}
