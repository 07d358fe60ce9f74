// Notifies the operator's webhook of runs with open questions. No run waits for it. Notifications stay in the store
// until delivered, so that another process, or the next start, can send them. A notification that is undeliverable for
// a day is dropped and logged; `GET /interrupts` still lists the questions.

import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../agent/core/errors.ts";
import { losers } from "../../agent/core/shares.ts";
import { backoff } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import { webhookHeaders } from "../../lib/webhook-signature.ts";
import type { Notification, NotificationStore } from "./notification-store.ts";
import type { InterruptedRun } from "./services.ts";

/**
 * Maximum number of notifications that wait here. Beyond it, one of the tenant with the most is left to the store, or
 * dropped.
 */
const MAX_WAITING = 1000;
const CONCURRENCY = 4;
/** Maximum milliseconds of one attempt, and of a series of attempts. */
const ATTEMPT_MS = 10_000;
const DEADLINE_MS = 10 * 60_000;
/** Milliseconds for which delivery is retried. */
const KEPT_MS = 24 * 3_600_000;
const PAUSE = { base: 500, cap: 60_000, jitter: 0.5 };
/** Milliseconds to hold a notification beyond the next attempt. After that, other processes may send it. */
const HOLD_MS = ATTEMPT_MS + 5_000;
/** Milliseconds between two checks for notifications that no process holds. */
const POLL_MS = 5_000;

/** Number of notifications to take at a time. */
const BATCH_SIZE = 100;

const CLOSING = "the server is shutting down";

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  /** Store in which notifications outlive this process. If absent, they do not. */
  readonly kept?: NotificationStore;
  /** Called for each notification. Must return at once and not throw. */
  onOutcome?(outcome: "delivered" | "dropped"): void;
}

type Message = Notification;

/** The caller closes it. */
export class InterruptWebhook {
  readonly #options: WebhookOptions;
  readonly #logger: Logger;
  /** Messages by tenant. The tenant whose turn is next comes first. */
  readonly #waiting = new Map<string, Message[]>();
  /** Ids of notifications that wait here or are being sent. */
  readonly #inHand = new Set<string>();
  readonly #workers = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #polling: NodeJS.Timeout | undefined;
  /** True if the store does not respond while this process ends. */
  #cannotRelease = false;

  constructor(options: WebhookOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
  }

  /** Starts to look for notifications that other processes left. */
  open(): void {
    if (!this.#options.kept) return;
    this.#polling = setInterval(() => void this.#poll(), POLL_MS).unref();
    void this.#poll();
  }

  /**
   * Call it before the end of the run is stored. Without the store, the notification is lost when this process ends.
   * Never throws.
   */
  async prepare(interrupted: InterruptedRun): Promise<void> {
    const message = messageFor(interrupted);
    await this.#options.kept
      ?.keep(message, HOLD_MS)
      .catch((error: unknown) => this.#complain(message, error));
  }

  /** Returns at once and never throws. */
  notify(interrupted: InterruptedRun): void {
    const message = messageFor(interrupted);
    if (this.#closing.signal.aborted) void this.#leave(message, CLOSING);
    else this.#queue(message);
  }

  /** Leaves undelivered notifications to the store. */
  async close(): Promise<void> {
    clearInterval(this.#polling);
    this.#closing.abort();
    await Promise.all(this.#workers);
  }

  async #poll(): Promise<void> {
    const { kept } = this.#options;
    const room = MAX_WAITING - this.#waitingCount();
    if (!kept || room <= 0 || this.#closing.signal.aborted) return;
    try {
      for (const message of await kept.take(Math.min(room, BATCH_SIZE), HOLD_MS)) this.#queue(message);
    } catch (error) {
      this.#logger.warn({ reason: messageOf(error) }, "could not look for webhook notifications");
    }
  }

  #waitingCount(): number {
    return this.#waiting.values().reduce((sum, { length }) => sum + length, 0);
  }

  #complain({ run_id, thread_id }: Message, error: unknown): void {
    const details = { run_id, thread_id, reason: messageOf(error) };
    this.#logger.warn(details, "a webhook notification could not be kept");
  }

  #queue(message: Message): void {
    if (this.#inHand.has(message.id)) return;
    this.#inHand.add(message.id);
    const { tenant } = message.owner;
    const own = this.#waiting.get(tenant);
    if (own) own.push(message);
    else this.#waiting.set(tenant, [message]);
    this.#dropSurplus(tenant);
    if (this.#workers.size >= CONCURRENCY) return;
    const worker = this.#work().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  #dropSurplus(asking: string): void {
    const counts = new Map([...this.#waiting].map(([tenant, { length }]) => [tenant, length]));
    if (counts.values().reduce((sum, count) => sum + count, 0) <= MAX_WAITING) return;
    const [loser = asking] = losers(counts, asking);
    const newest = this.#waiting.get(loser)?.pop();
    if (newest) void this.#leave(newest, "too many wait to be sent");
  }

  /** Returns the next notification to send, with tenants in turn. */
  #next(): Message | undefined {
    for (const [tenant, messages] of this.#waiting) {
      const message = messages.shift();
      this.#waiting.delete(tenant);
      if (messages.length > 0) this.#waiting.set(tenant, messages);
      if (message) return message;
    }
    return undefined;
  }

  async #work(): Promise<void> {
    for (let message = this.#next(); message; message = this.#next()) {
      const failure = await this.#deliver(message);
      if (failure && !failure.isFinal && Date.now() - message.at < KEPT_MS) {
        await this.#leave(message, failure.why);
        continue;
      }
      await this.#options.kept?.forget(message).catch((error: unknown) => this.#complain(message, error));
      this.#inHand.delete(message.id);
      if (failure === undefined) this.#options.onOutcome?.("delivered");
      else this.#drop(message, failure.why);
    }
  }

  /** Lets other processes send a stored notification. When this process ends, they may do so at once. Never throws. */
  async #leave(message: Message, why: string): Promise<void> {
    this.#inHand.delete(message.id);
    const { kept } = this.#options;
    if (!kept) return this.#drop(message, why);
    if (!this.#closing.signal.aborted || this.#cannotRelease) return;
    await kept.hold(message, 0).catch(() => {
      this.#cannotRelease = true;
    });
  }

  /** Returns why the notification could not be delivered. */
  async #deliver(message: Message): Promise<Failure | undefined> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(DEADLINE_MS)]);
    let failure: Failure = { why: CLOSING, isFinal: false };
    for (let attempt = 0; !signal.aborted; attempt++) {
      const result = await this.#send(message, signal);
      if (result === "delivered") return undefined;
      failure = result;
      if (result.isFinal) break;
      const pause = backoff(attempt, PAUSE);
      await this.#options.kept
        ?.hold(message, pause + HOLD_MS)
        .catch((error: unknown) => this.#complain(message, error));
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
    return failure;
  }

  async #send({ id, body }: Message, signal: AbortSignal): Promise<"delivered" | Failure> {
    const { url, secret } = this.#options;
    try {
      const response = await fetch(url, {
        method: "POST",
        body,
        redirect: "error",
        headers: {
          "content-type": "application/json",
          "user-agent": "skein",
          ...(await webhookHeaders([secret], { id, body })),
        },
        signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]),
      });
      await response.body?.cancel();
      if (response.ok) return "delivered";
      return { why: `it answered ${response.status}`, isFinal: isRefusal(response.status) };
    } catch (error) {
      return { why: `it could not be reached (${reasonOf(error)})`, isFinal: false };
    }
  }

  #drop({ id, owner: { tenant }, run_id, thread_id }: Message, why: string): void {
    const details = { webhook_id: id, tenant, run_id, thread_id, why };
    this.#logger.error(details, "a webhook notification was dropped");
    this.#options.onOutcome?.("dropped");
  }
}

interface Failure {
  readonly why: string;
  /** True if a retry would fail the same way. */
  readonly isFinal: boolean;
}

/** Client errors that a retry may resolve. */
const TRANSIENT = new Set([408, 409, 425, 429]);
const isRefusal = (status: number) => status >= 400 && status < 500 && !TRANSIENT.has(status);

/** Returns the cause of a failed `fetch`, without the address, which may contain a secret. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") return cause.code;
  return error instanceof Error && error.name !== "TypeError" ? error.name : messageOf(error);
}

function messageFor({ owner, run, interrupts }: InterruptedRun): Message {
  const { id: run_id, thread_id, agent } = run;
  const data = { tenant: owner.tenant, user: owner.user, thread_id, run_id, agent, interrupts };
  const body = JSON.stringify({ type: "run.interrupted", timestamp: new Date().toISOString(), data });
  // The id is the same for each attempt at the end of a run, in any process.
  return { id: `msg_${run_id}`, owner, run_id, thread_id, body, at: Date.now() };
}
