// Triggers are addresses that other services call. Every verified delivery starts one run for the trigger's owner.

import { LRUCache } from "lru-cache";
import type { Documents } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { userMessage } from "../../agent/core/message.ts";
import type { Page } from "../../agent/core/stores.ts";
import type { Logger } from "../../lib/logger.ts";
import { atMost } from "../../lib/lru.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Quotas } from "../quotas/index.ts";
import type { Runs } from "../runs/executor.ts";
import { startRun } from "../runs/start.ts";
import { withdrawRun } from "../runs/withdraw.ts";
import { createDeliveryLog, type DeliveryLog } from "./delivery-log.ts";
import { challengeOf, keyOf, type PlannedRun, planOf } from "./plan.ts";
import { requestRate } from "./rate.ts";
import { createTriggerStore, type StartedRun, type TriggerStore } from "./store.ts";
import {
  type Delivery,
  type PauseReason,
  secretsOf,
  type Trigger,
  type TriggerInfo,
  triggerInfo,
} from "./trigger.ts";
import { isVerified, type RawDelivery } from "./verify.ts";

export interface TriggerServices {
  readonly documents: Documents;
  readonly runs: Runs;
  readonly quotas: Pick<Quotas, "request">;
  readonly logger: Pick<Logger, "warn">;
  /** Returns the reason why an API key can no longer be used, or undefined if it can. */
  endOfKey(apiKey: string): Promise<AppError | undefined>;
  /** The server's public address. */
  readonly publicUrl: string | undefined;
  /** Called for each delivery. Must return at once and not throw. */
  onDelivery?(owner: Owner, trigger: string, delivery: Omit<Delivery, "at"> & { request_id: string }): void;
  readonly limits: {
    /** The maximum number of triggers per user. */
    readonly triggers: number;
    /** The maximum number of requests to a trigger per minute, in this process. */
    readonly requestsPerMinute: number;
  };
}

/** A trigger that accepts deliveries. */
export interface OpenTrigger {
  readonly owner: Owner;
  readonly trigger: Trigger;
  readonly version: string;
}

/** A delivery as received, with a function to read it after verification. */
export interface IncomingDelivery extends RawDelivery {
  readonly request_id: string;
  /** Throws `invalid_request` for an invalid body. */
  parse(): Promise<unknown>;
}

export type DeliveryAnswer = StartedRun | { readonly ignored: string } | { readonly challenge: string };

export interface Triggers {
  readonly store: TriggerStore;
  /** Returns the trigger at an address. Throws `not_found` for an unknown or paused trigger, and `limit_exceeded`. */
  open(address: string): Promise<OpenTrigger>;
  /**
   * Receives a delivery. Throws `unauthorized` if it is not verified, `not_found` if it causes the trigger to be
   * paused, or the error that prevents a run from starting now.
   */
  receive(open: OpenTrigger, incoming: IncomingDelivery): Promise<DeliveryAnswer>;
  infoOf(trigger: Trigger): TriggerInfo;
  /** The triggers, exported without secrets and deleted along with their user. */
  readonly records: {
    list(owner: Owner, page: { limit: number; cursor?: string | undefined }): Promise<Page<TriggerInfo>>;
    deleteAll(owner: Owner): Promise<number>;
  };
  /** Throws `invalid_request` for an agent that does not exist. */
  checkAgent(name: string): void;
  /** Writes all pending deliveries. */
  close(): Promise<void>;
}

/** The maximum number of triggers whose request rates a process tracks. */
const MAX_RATES = 10_000;

/** The caller must close it. */
export function createTriggers(services: TriggerServices): Triggers {
  const { documents, limits, logger, runs } = services;
  const store = createTriggerStore(documents, limits.triggers);
  const log = createDeliveryLog(store, logger);
  const infoOf = (trigger: Trigger) => triggerInfo(trigger, services.publicUrl);
  const rates = new LRUCache<string, () => number>(atMost(MAX_RATES));
  return {
    store,
    async open(address) {
      const found = await store.at(address);
      if (!found || found.trigger.paused) throw noTrigger();
      const rate = rates.get(address) ?? requestRate(limits.requestsPerMinute);
      rates.set(address, rate);
      const waitMs = rate();
      if (waitMs > 0) throw tooOften(limits.requestsPerMinute, waitMs);
      return found;
    },
    receive: (open, incoming) => receive({ ...services, store, log }, open, incoming),
    infoOf,
    records: {
      async list(owner, page) {
        const { items, ...rest } = await store.list(owner, page);
        return { items: items.map(infoOf), ...rest };
      },
      deleteAll: store.erase,
    },
    checkAgent: (name) => void runs.agents.find(name),
    close: () => log.close(),
  };
}

type ReceiveServices = TriggerServices & { readonly store: TriggerStore; readonly log: DeliveryLog };

async function receive(
  services: ReceiveServices,
  open: OpenTrigger,
  incoming: IncomingDelivery,
): Promise<DeliveryAnswer> {
  const { quotas, store, log } = services;
  const { owner, trigger } = open;
  const at = new Date().toISOString();
  const note = (delivery: Omit<Delivery, "at">) => {
    log.add(owner, trigger.id, { at, ...delivery });
    services.onDelivery?.(owner, trigger.id, { ...delivery, request_id: incoming.request_id });
  };
  if (!isVerified(trigger.verify, secretsOf(trigger, Date.now()), incoming, Date.now())) {
    note({ outcome: "refused", reason: "not verified" });
    throw notVerified();
  }
  let id: string | undefined;
  try {
    const body = await incoming.parse();
    const challenge = challengeOf(trigger, body);
    if (challenge !== undefined) return { challenge };
    await quotas.request(owner);
    const plan = planOf(trigger, incoming, body);
    id = plan.sent_id;
    if ("ignored" in plan) {
      note({ id, outcome: "ignored", reason: plan.ignored });
      return { ignored: plan.ignored };
    }
    const known = await store.started(owner, trigger.id, keyOf(plan.delivery_id));
    await assertFit(services, open);
    if (!known) await assertCurrent(store, open);
    const run = known ?? (await start(services, open, plan, incoming.request_id));
    note({ id, outcome: known ? "repeated" : "started", ...run });
    return run;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    note({ outcome: "failed", reason: error.message, ...omitUndefined({ id }) });
    throw refusal(error);
  }
}

/**
 * Reads the trigger again just before its run starts. Throws `not_found` if it was paused or deleted in the meantime.
 * Throws `unavailable` if another API key replaced it, so the sender's next attempt uses that key.
 */
async function assertCurrent(store: TriggerStore, { owner, trigger }: OpenTrigger): Promise<void> {
  const current = (await store.get(owner, trigger.id))?.trigger;
  if (!current || current.paused || current.address !== trigger.address) throw noTrigger();
  if (current.api_key !== trigger.api_key)
    throw new AppError(
      "unavailable",
      "Another API key replaced the trigger while the delivery was being processed.",
    );
}

/**
 * Throws if the trigger's API key has ended or its agent is missing. Throws `unavailable` while the agent may come
 * back; otherwise pauses the trigger and throws `not_found`.
 */
async function assertFit(
  { runs, store, logger, endOfKey }: ReceiveServices,
  { owner, trigger, version }: OpenTrigger,
): Promise<void> {
  const place = { owner, id: trigger.id, version };
  const reason = await unfitness(runs, endOfKey, trigger);
  if (!reason) return trigger.missing_since === undefined ? undefined : store.recovered(place);
  const { code, message } = reason;
  const stored = await store.unfit(place, reason);
  if (!stored?.paused) throw new AppError(stored ? "unavailable" : "not_found", message);
  logger.warn(
    { tenant: owner.tenant, user: owner.user, trigger: trigger.id, code, reason: message },
    "trigger paused",
  );
  throw new AppError("not_found", message);
}

async function unfitness(
  { agents }: Pick<Runs, "agents">,
  endOfKey: TriggerServices["endOfKey"],
  { agent, api_key }: Trigger,
): Promise<Omit<PauseReason, "at"> | undefined> {
  const end = api_key === undefined ? undefined : await endOfKey(api_key);
  if (end?.code === "credentials_revoked" || end?.code === "credentials_expired")
    return { code: end.code, message: end.message };
  try {
    agents.find(agent);
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return { code: "agent_missing", message: error.message };
    throw error;
  }
}

/** Starts the run of a delivery. If several processes receive the same delivery, all of them get the same run. */
async function start(
  { runs, store }: ReceiveServices,
  { owner, trigger: { id, api_key } }: OpenTrigger,
  { agent, input, thread_id, delivery_id, metadata }: PlannedRun,
  request_id: string,
): Promise<StartedRun> {
  const idempotency_key = keyOf(delivery_id);
  const request = {
    input: [userMessage(input)],
    settings: {},
    origin: { request_id },
    ...omitUndefined({ api_key }),
  };
  const command = { thread_id, agent, metadata, request, idempotency_key, on_busy: "enqueue" } as const;
  const { id: run_id } = await startRun(runs, owner, command);
  if (await store.keepStarted(owner, id, idempotency_key, { thread_id, run_id }))
    return { thread_id, run_id };
  await withdrawRun(runs, owner, { thread_id, id: run_id });
  throw noTrigger();
}

const noTrigger = () => new AppError("not_found", "No trigger accepts deliveries at this address.");

/** The text is the same for all causes, so it reveals nothing. */
const notVerified = () =>
  new AppError(
    "unauthorized",
    "The delivery is not signed with the secret of this trigger, or was signed more than five minutes ago.",
  );

const tooOften = (most: number, retry_after_ms: number) =>
  new AppError(
    "limit_exceeded",
    `This address accepts ${most} requests a minute. Send the delivery again later.`,
    {
      details: { limit: "limits.trigger_requests", most, retry_after_ms },
    },
  );

/** Returns the error to show to the sender. The owner can see the full error in the trigger's deliveries. */
function refusal(error: AppError): AppError {
  const { code, details = {} } = error;
  if (code === "not_found") return noTrigger();
  if (code === "invalid_request" || code === "payload_too_large") return error;
  const { retry_after_ms } = details;
  const known = retry_after_ms === undefined ? {} : { details: { retry_after_ms } };
  return new AppError(code, "The delivery did not start a run. Send it again later.", {
    ...known,
    cause: error,
  });
}
