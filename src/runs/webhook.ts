// Notifies the operator's webhook of runs with open questions. No run waits for it. A notification that cannot be delivered in
// time is dropped and logged; `GET /interrupts` lists the questions anyway.

import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import { losers } from "../core/shares.ts";
import { backoff } from "../lib/backoff.ts";
import type { Logger } from "../lib/logger.ts";
import { randomId } from "../lib/random-id.ts";
import { webhookHeaders } from "../lib/webhook-signature.ts";
import type { InterruptedRun } from "./services.ts";

/** Notifications that may wait to be sent. For one more, one of the tenant that has most is dropped. */
const MAX_WAITING = 1000;
const CONCURRENCY = 4;
/** How long one attempt may take, and all attempts of a notification together, in ms. */
const ATTEMPT_MS = 10_000;
const DEADLINE_MS = 10 * 60_000;
const PAUSE = { base: 500, cap: 60_000, jitter: 0.5 };

const CLOSING = "the server is shutting down";

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  /** Called for each notification. Must return at once and not throw. */
  onOutcome?(outcome: "delivered" | "dropped"): void;
}

interface Message {
  readonly id: string;
  readonly tenant: string;
  readonly run_id: string;
  readonly thread_id: string;
  readonly body: string;
}

/** The caller closes it. */
export class InterruptWebhook {
  readonly #options: WebhookOptions;
  readonly #logger: Logger;
  /** By tenant; the one whose turn it is comes first. */
  readonly #waiting = new Map<string, Message[]>();
  readonly #workers = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(options: WebhookOptions, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
  }

  /** Returns at once and never throws. */
  notify(interrupted: InterruptedRun): void {
    const message = messageFor(interrupted);
    if (this.#closing.signal.aborted) this.#drop(message, CLOSING);
    else this.#queue(message);
  }

  /** Drops the notifications that are not delivered yet. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#workers);
  }

  #queue(message: Message): void {
    const { tenant } = message;
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
    if (newest) this.#drop(newest, "too many wait to be sent");
  }

  /** The next one to send, of each tenant in turn. */
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
      if (failure === undefined) this.#options.onOutcome?.("delivered");
      else this.#drop(message, failure);
    }
  }

  /** Returns why the notification could not be delivered. */
  async #deliver(message: Message): Promise<string | undefined> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(DEADLINE_MS)]);
    let failure = CLOSING;
    for (let attempt = 0; !signal.aborted; attempt++) {
      const result = await this.#send(message, signal);
      if (result === "delivered") return undefined;
      failure = result.why;
      if (result.isFinal) break;
      await sleep(backoff(attempt, PAUSE), undefined, { signal }).catch(() => {});
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

  #drop({ id, tenant, run_id, thread_id }: Message, why: string): void {
    const details = { webhook_id: id, tenant, run_id, thread_id, why };
    this.#logger.error(details, "a webhook notification was dropped");
    this.#options.onOutcome?.("dropped");
  }
}

interface Failure {
  readonly why: string;
  /** A retry would fail the same way. */
  readonly isFinal: boolean;
}

/** Client errors that a retry may cure. */
const TRANSIENT = new Set([408, 409, 425, 429]);
const isRefusal = (status: number) => status >= 400 && status < 500 && !TRANSIENT.has(status);

/** The cause of a failed `fetch`. It does not contain the address, which may hold a secret. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") return cause.code;
  return error instanceof Error && error.name !== "TypeError" ? error.name : messageOf(error);
}

function messageFor({ owner, run, interrupts }: InterruptedRun): Message {
  const { id: run_id, thread_id, agent } = run;
  const data = { tenant: owner.tenant, user: owner.user, thread_id, run_id, agent, interrupts };
  const body = JSON.stringify({ type: "run.interrupted", timestamp: new Date().toISOString(), data });
  return { id: `msg_${randomId()}`, tenant: owner.tenant, run_id, thread_id, body };
}
