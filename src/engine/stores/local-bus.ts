// Delivers messages within one process: users' events to their subscribers, and notifications to the executor of runs.

import type { Announcement, EventBus, UserEvent } from "../../agent/core/bus.ts";
import type { AppError } from "../../agent/core/errors.ts";
import type { ControlMessage } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import { fellBehind, storeClosed } from "./errors.ts";
import { OwnerMap } from "./owner-map.ts";

/** The maximum number of waiting events per subscriber. If more events are waiting, all of them are dropped. */
const MAX_BEHIND = 1000;

export class LocalBus implements EventBus {
  readonly #onAudience: (owner: Owner, isHeard: boolean) => void;
  readonly #subscriptions = new OwnerMap<Subscription>();
  #count = 0;
  #isClosed = false;

  /** Calls `onAudience` when an owner's first subscription begins and when the last one ends. */
  constructor(onAudience: (owner: Owner, isHeard: boolean) => void = () => {}) {
    this.#onAudience = onAudience;
  }

  publish(owner: Owner, event: UserEvent): void {
    for (const subscription of this.#subscriptions.of(owner)) subscription.give(event);
  }

  announce(event: Announcement): void {
    for (const subscription of [...this.#subscriptions.values()]) subscription.give(event);
  }

  subscribe(owner: Owner, signal: AbortSignal): AsyncGenerator<UserEvent, void, void> {
    const key = String(this.#count++);
    const leave = () => subscription.end();
    const subscription = new Subscription(() => {
      this.#subscriptions.delete(owner, key);
      if (this.#subscriptions.of(owner).length === 0) this.#onAudience(owner, false);
      signal.removeEventListener("abort", leave);
    });
    this.#subscriptions.set(owner, key, subscription);
    if (this.#subscriptions.of(owner).length === 1) this.#onAudience(owner, true);
    signal.addEventListener("abort", leave);
    if (this.#isClosed) subscription.end(storeClosed());
    else if (signal.aborted) leave();
    return subscription.events();
  }

  /** Closes all subscriptions. Subscribers get `unavailable`. */
  close(): void {
    this.#isClosed = true;
    for (const subscription of [...this.#subscriptions.values()]) subscription.end(storeClosed());
  }
}

class Subscription {
  readonly #onEnd: () => void;
  #waiting: UserEvent[] = [];
  /** Set once the subscription has ended. Contains the reason unless the subscriber ended it. */
  #end: { readonly reason: AppError | undefined } | undefined;
  #wake = () => {};

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  give(event: UserEvent): void {
    if (this.#waiting.push(event) > MAX_BEHIND) this.end(fellBehind(MAX_BEHIND));
    else this.#wake();
  }

  /** Ends the subscription. Only the first call counts. */
  end(reason?: AppError): void {
    if (this.#end) return;
    this.#end = { reason };
    this.#waiting = [];
    this.#onEnd();
    this.#wake();
  }

  events(): AsyncGenerator<UserEvent, void, void> {
    const events = this.#pulled();
    const close = events.return.bind(events);
    // A generator that was never started does not run its `finally` block, and a waiting generator notices nothing
    // until it is woken.
    events.return = (value) => {
      this.end();
      return close(value);
    };
    return events;
  }

  async *#pulled(): AsyncGenerator<UserEvent, void, void> {
    for (;;) {
      const event = this.#waiting.shift();
      if (event) yield event;
      else if (!this.#end)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      else if (this.#end.reason) throw this.#end.reason;
      else return;
    }
  }
}

/** Notifications to the executor of runs. */
export class ControlChannel {
  #listener: ((call: ControlMessage) => void) | undefined;

  subscribe(listener: (call: ControlMessage) => void): void {
    this.#listener = listener;
  }

  /** Delivers the message in a microtask. Does nothing after the channel is closed. */
  publish(call: ControlMessage): void {
    queueMicrotask(() => this.#listener?.(call));
  }

  close(): void {
    this.#listener = undefined;
  }
}
