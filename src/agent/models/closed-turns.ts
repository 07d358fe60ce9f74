// Caches the closed turns of long threads as text for model requests. A thread's next request appends the turns that have
// closed since, and serializes only the most recent turn.

import { ownTick } from "../../lib/ticks.ts";
import { areLong, type Message } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { losers } from "../core/shares.ts";
import { jsonList } from "./json-list.ts";
import { beginsTurn, CallIds, type HistoryStep, newestTurn, repairClosed } from "./repair.ts";

/**
 * The maximum size of the whole cache, in bytes. When the cache is larger, the largest tenant loses the entry
 * that has not grown for the longest time.
 */
const MAX_BYTES = 32 * 1024 * 1024;
/** The maximum size of one thread, in bytes. */
const MAX_THREAD_BYTES = 4 * 1024 * 1024;

/** Up to this number of short messages, serializing is faster than a cache lookup. */
const FEW = 64;

/** Serializes steps for one model. Each model and each format needs a separate object. */
export interface WireSteps<M = unknown> {
  readonly callId: RegExp;
  readonly keepsOwnIds: boolean;
  /** The provider whose own blocks are kept. */
  readonly blocksOf?: string | undefined;
  readonly write: (steps: readonly HistoryStep[]) => readonly M[];
}

export interface ClosedTurns {
  /** The first messages of the request. */
  readonly messages: readonly Message[];
  /** At least one element of a JSON list. */
  readonly text: Buffer;
  readonly ids: CallIds;
}

interface CachedTurns extends ClosedTurns {
  readonly wire: WireSteps;
  readonly weight: Weight;
}

interface Weight {
  readonly tenant: string;
  readonly bytes: number;
  readonly first: WeakRef<Message>;
}

/**
 * The entries, keyed by the first message of the thread. An entry lives as long as other code references that
 * message, such as a run, or the in-memory store until it deletes or compresses the thread.
 */
const kept = new WeakMap<Message, CachedTurns>();
/** The weights of the entries, sorted by the time when the entry last grew, oldest first. */
const weights = new Set<Weight>();
let keptBytes = 0;
const collected = new FinalizationRegistry<Weight>(discount);

/**
 * Turns that are omitted from a request's parameters. They belong after the first `at` messages of the
 * request.
 */
export interface OmittedTurns {
  readonly at: number;
  readonly closed: ClosedTurns;
}

/** Returns the turns to leave out. The messages after closed turns begin with a user message. */
export const leftOut = (
  closed: ClosedTurns | undefined,
  { messages }: { readonly messages: readonly { readonly role: string }[] },
): OmittedTurns | undefined => closed && { closed, at: messages.findIndex(({ role }) => role === "user") };

/**
 * Returns the closed turns at the start of `messages`. Stops at a message that is not frozen, because it
 * could still change. Returns undefined if no turn is closed, or for a few short messages.
 */
export async function closedTurns(
  { messages, model, tenant = "" }: Pick<ModelRequest, "messages" | "model" | "tenant">,
  wire: WireSteps,
): Promise<ClosedTurns | undefined> {
  if (messages.length < FEW && !areLong(messages)) return undefined;
  const before = find(messages, wire);
  const from = before?.messages.length ?? 0;
  const news = messages.slice(from, newestTurn(messages));
  if (news.length === 0 || !news.every(Object.isFrozen)) return before;
  const ids = before?.ids.copy() ?? new CallIds(wire.callId);
  const scope = { ids, author: wire.keepsOwnIds ? model.name : undefined };
  const steps = repairClosed(news, scope, { isBeginning: from === 0, blocksOf: wire.blocksOf });
  if (!steps) return before;
  if (areLong(news)) await ownTick(tenant);
  const texts = [...(before ? [before.text, COMMA] : []), ...(await jsonList(wire.write(steps), tenant))];
  const closed = { messages: messages.slice(0, from + news.length), text: Buffer.concat(texts), ids, wire };
  keep(closed, tenant);
  return closed;
}

const COMMA = Buffer.from(",");

/**
 * Finds the cached turns. Compares messages by identity, because different threads never share message
 * objects.
 */
function find(messages: readonly Message[], wire: WireSteps): CachedTurns | undefined {
  const found = messages[0] && kept.get(messages[0]);
  if (found?.wire !== wire) return undefined;
  const isBeginning = found.messages.every((message, index) => message === messages[index]);
  return isBeginning && beginsTurn(messages, found.messages.length) ? found : undefined;
}

function keep(closed: Omit<CachedTurns, "weight">, tenant: string): void {
  const [first] = closed.messages;
  if (!first) return;
  const before = kept.get(first);
  if (before) forget(before.weight);
  const bytes = bytesOf(closed);
  if (bytes > MAX_THREAD_BYTES) return;
  const weight = { tenant, bytes, first: new WeakRef(first) };
  kept.set(first, { ...closed, weight });
  collected.register(first, weight, weight);
  weights.add(weight);
  keptBytes += bytes;
  while (keptBytes > MAX_BYTES) forget(oldestOf(losers(bytesByTenant(), tenant)[0] ?? tenant) ?? weight);
}

function forget(weight: Weight): void {
  const first = weight.first.deref();
  if (first) kept.delete(first);
  collected.unregister(weight);
  discount(weight);
}

function discount(weight: Weight): void {
  if (weights.delete(weight)) keptBytes -= weight.bytes;
}

function bytesByTenant(): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { tenant, bytes } of weights) sums.set(tenant, (sums.get(tenant) ?? 0) + bytes);
  return sums;
}

const oldestOf = (tenant: string) => weights.values().find((weight) => weight.tenant === tenant);

/** Returns the size of the text and the message list, in bytes. Other code owns the messages themselves. */
const bytesOf = ({ text, messages }: ClosedTurns) => text.length + 8 * messages.length;
