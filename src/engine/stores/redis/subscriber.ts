// The connection that receives messages for all subscribers and channels of this process. Messages may be missed while
// the connection is broken. Listeners are called when it is restored.

import type { Cluster, Redis } from "ioredis";
import type { Owner } from "../../../protocol/ids.ts";
import type { Clients } from "./client.ts";
import { callChannel, channelsOf, probeChannel, runChannel, userChannel } from "./keys.ts";

export interface Listener {
  onMessage(message: string): void;
  /** Called when messages may have been missed. */
  onGap(): void;
}

/** The number of channels to join at a time after a reconnect. */
const CHUNK = 500;
/** The number of milliseconds between two probes of the connection, which is otherwise only used to receive. */
const PROBE_MS = 5_000;
/** The number of milliseconds after which a failed join of a channel is retried. */
const RETRY_MS = 100;

export class Subscriber {
  readonly #client: Redis | Cluster;
  readonly #isCluster: boolean;
  readonly #listeners = new Map<string, Listener>();
  readonly #probe: NodeJS.Timeout;
  #isClosed = false;

  constructor({ messages, isCluster }: Clients) {
    this.#client = messages;
    this.#isCluster = isCluster;
    messages.on(isCluster ? "smessage" : "message", (channel: string, message: string) =>
      this.#listeners.get(channel)?.onMessage(message),
    );
    messages.on(isCluster ? "subscribersReady" : "ready", () => this.#restore([...this.#listeners.keys()]));
    this.#probe = setInterval(() => void messages.ping().catch(ignore), PROBE_MS).unref();
  }

  /**
   * Resolves when messages on `channel` reach `listener`, which must be the only one. Resolves at once while Redis is
   * unreachable.
   */
  async join(channel: string, listener: Listener): Promise<void> {
    this.#listeners.set(channel, listener);
    await this.#subscribe([channel]);
  }

  leave(channel: string): void {
    if (!this.#listeners.delete(channel)) return;
    const left = this.#isCluster ? this.#client.sunsubscribe(channel) : this.#client.unsubscribe(channel);
    void left.catch(ignore);
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#probe);
    this.#client.disconnect();
  }

  /**
   * Joins the channels that have listeners. A cluster's connections have already joined their channels themselves, if
   * possible.
   */
  async #restore(channels: readonly string[]): Promise<void> {
    const wanted = channels.filter((channel) => this.#listeners.has(channel));
    const size = this.#isCluster ? 1 : CHUNK;
    for (let from = 0; from < wanted.length; from += size) {
      const some = wanted.slice(from, from + size);
      await this.#subscribe(some);
      for (const channel of some) this.#listeners.get(channel)?.onGap();
    }
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    if (this.#isClosed) return;
    try {
      if (this.#isCluster) await this.#client.ssubscribe(...channels);
      else await this.#client.subscribe(...channels);
    } catch {
      setTimeout(() => this.#restore(channels), RETRY_MS).unref();
    }
  }
}

function ignore(): void {}

// The channels to which scripts deliver their writes.

export interface Channels {
  readonly isCluster: boolean;
  /** The publish command. In a cluster, messages stay on the server that owns the channel's slot. */
  readonly publish: "PUBLISH" | "SPUBLISH";
  channelOf(thread: string, runId: string): string;
  channelOfUser(owner: Owner): string;
  /** Channel for messages to all processes. */
  readonly channelOfCalls: string;
  readonly channelOfProbe: string;
}

export function createChannels({ isCluster, database }: Pick<Clients, "isCluster" | "database">): Channels {
  const channels = channelsOf(database);
  return {
    isCluster,
    publish: isCluster ? "SPUBLISH" : "PUBLISH",
    channelOf: (thread, runId) => runChannel(channels, thread, runId),
    channelOfUser: (owner) => userChannel(channels, owner),
    channelOfCalls: callChannel(channels),
    channelOfProbe: probeChannel(channels),
  };
}
