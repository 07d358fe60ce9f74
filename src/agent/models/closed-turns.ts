// The closed turns of long threads as they stand in model requests: written once, and kept as text. A later request of the
// thread adds the turns that were closed since, and writes only its newest turn itself.

import { ownTick } from "../../lib/ticks.ts";
import { areLong, type Message } from "../core/message.ts";
import type { ModelRequest } from "../core/model.ts";
import { losers } from "../core/shares.ts";
import { jsonList } from "./json-list.ts";
import { beginsTurn, CallIds, type HistoryStep, newestTurn, repairClosed } from "./repair.ts";

/** Of everything that is kept. Past it those go to which nothing was added for the longest time, of the tenant that has most. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Of one thread. */
const MAX_THREAD_BYTES = 4 * 1024 * 1024;

/** So few short messages are written sooner than found. */
const FEW = 64;

/** How a wire writes steps for one model. Not the same object for two that write them differently, or for two models. */
export interface WireSteps<M = unknown> {
  readonly callId: RegExp;
  readonly keepsOwnIds: boolean;
  readonly write: (steps: readonly HistoryStep[]) => readonly M[];
}

export interface ClosedTurns {
  /** The beginning of the request's messages. */
  readonly messages: readonly Message[];
  /** The elements of a JSON list; at least one. */
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
 * By the first message of the thread, and as long as others hold that: a run does, and in memory the store, until the thread
 * is deleted or compressed.
 */
const kept = new WeakMap<Message, CachedTurns>();
/** Of what is kept, in the order of its growth. */
const weights = new Set<Weight>();
let keptBytes = 0;
const collected = new FinalizationRegistry<Weight>(discount);

/** Turns that are left out of a request's parameters, to stand behind the first `at` of its messages. */
export interface LeftOut {
  readonly at: number;
  readonly closed: ClosedTurns;
}

/** What stands behind closed turns begins with the user's message. */
export const leftOut = (
  closed: ClosedTurns | undefined,
  { messages }: { readonly messages: readonly { readonly role: string }[] },
): LeftOut | undefined => closed && { closed, at: messages.findIndex(({ role }) => role === "user") };

/**
 * The closed turns with which `messages` begin, as far as their messages are frozen: another one could change after it was
 * written. Undefined when there are none, and for few short messages.
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
  const steps = repairClosed(news, { ids, author: wire.keepsOwnIds ? model.name : undefined }, from === 0);
  if (!steps) return before;
  if (areLong(news)) await ownTick(tenant);
  const texts = [...(before ? [before.text, COMMA] : []), ...(await jsonList(wire.write(steps), tenant))];
  const closed = { messages: messages.slice(0, from + news.length), text: Buffer.concat(texts), ids, wire };
  keep(closed, tenant);
  return closed;
}

const COMMA = Buffer.from(",");

/** Messages are compared by identity: those of another thread are never the same objects. */
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

/** Of the text and of the list of messages; those themselves are held by others. */
const bytesOf = ({ text, messages }: ClosedTurns) => text.length + 8 * messages.length;
