// Stores the deliveries of users', tenants' and the operator's webhooks as documents until they are settled, and for
// some days after that. Ordered deliveries of a thread share a lane, in which only the first one is ever due.

import { LRUCache } from "lru-cache";
import { type ClaimedDocument, finish } from "../../agent/core/document-claims.ts";
import {
  change,
  type Document,
  type Documents,
  type DocumentWrite,
  newVersion,
  type OwnedCollection,
  remove,
} from "../../agent/core/documents.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { atMost } from "../../lib/lru.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import { again, Delivery, type DeliveryStatus, statusOf } from "./delivery.ts";
import type { Keeper } from "./webhook.ts";

export const DELIVERIES = "webhook_deliveries";
/** The collection for deliveries of the operator's webhook. */
export const NOTIFICATIONS = "notifications";

/** Where a delivery is stored. */
export interface DeliveryPlace {
  readonly collection: OwnedCollection;
  readonly key: string;
}

export const deliveriesOf = ({ tenant, user }: Keeper): OwnedCollection =>
  user === undefined ? { kind: DELIVERIES, tenant } : { kind: DELIVERIES, tenant, user };

/**
 * The maximum number of stored deliveries per user, and per tenant. At the limit, the oldest settled deliveries are
 * deleted; if none is settled, the new delivery is dropped.
 */
const MAX_OF_USER = 1_000;
const MAX_OF_TENANT = 10_000;
/** The inverse of the fraction of deliveries that are deleted at once, so that deletions are rarely needed. */
const SHARE = 10;
/**
 * How long to wait before listing a full collection again, in milliseconds, and how many full collections a process
 * remembers.
 */
const FULL_MS = 30_000;
const MAX_FULL = 10_000;
/** The maximum number of documents that one write deletes. */
const BATCH_SIZE = 100;
/** The maximum number of pages that one list reads to find the deliveries of a webhook. */
const MAX_PAGES = 20;

export interface DeliveryPage {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly status?: DeliveryStatus | undefined;
}

export interface DeliveryStore {
  /**
   * Stores a delivery, due in `holdMs`. Replaces a delivery with the same key only if that one is still prepared.
   * Throws `limit_exceeded` if there is no room.
   */
  keep(place: DeliveryPlace, delivery: Delivery, holdMs: number): Promise<void>;
  /** Records that the run of a prepared delivery has ended as `delivery` describes. */
  confirm(place: DeliveryPlace, delivery: Delivery): Promise<void>;
  /**
   * Ends a claim with the delivery's next state, or deletes the delivery if `next` is undefined. Returns false if the
   * claim has expired.
   */
  settle(claimed: ClaimedDocument, next: Delivery | undefined, due: number | null): Promise<boolean>;
  /** Returns deliveries, newest first. A page may be empty and still have a `next_cursor`. */
  list(keeper: Keeper, webhook: string, page: DeliveryPage): Promise<Page<Delivery>>;
  /** Sends a delivery again. Returns undefined if the webhook has no such delivery. */
  again(keeper: Keeper, webhook: string, id: string): Promise<Delivery | undefined>;
  /** Deletes all deliveries of a webhook. */
  forget(keeper: Keeper, webhook: string): Promise<void>;
  /** Deletes the deliveries about a user from the tenant's webhooks, whether or not they were sent. */
  forgetUser(user: Owner): Promise<void>;
}

export const parsedDelivery = (body: string): Delivery => Delivery.parse(JSON.parse(body));

export function createDeliveryStore(documents: Documents): DeliveryStore {
  const full = new LRUCache<string, true>({ ...atMost(MAX_FULL), ttl: FULL_MS });
  const keep = ({ collection, key }: DeliveryPlace, delivery: Delivery, holdMs: number) =>
    change(
      documents,
      { collection, keys: keysOf(key, delivery), limit: { count: mostOf(collection), error: tooMany } },
      ({ found: [before, lane], now }) => {
        if (before && parsedDelivery(before.body).state !== "prepared") return { result: undefined };
        const queue = [...new Set([...queueIn(lane), key])];
        const due = delivery.lane === undefined || queue[0] === key ? now + holdMs : null;
        const body = JSON.stringify({ ...delivery, since: now, ...(due === null ? {} : { next_at: due }) });
        return {
          writes: [{ key, seen: before?.version, body, due }, ...laneWrites(delivery, lane, queue)],
          result: undefined,
        };
      },
    );

  return {
    async keep(place, delivery, holdMs) {
      try {
        await keep(place, delivery, holdMs);
      } catch (error) {
        if (!hasCode(error, "limit_exceeded")) throw error;
        const name = JSON.stringify(place.collection);
        if (full.has(name)) throw error;
        if (!(await makeRoom(documents, place.collection))) full.set(name, true);
        await keep(place, delivery, holdMs);
      }
    },

    confirm: (place, delivery) => confirm(documents, place, delivery),

    async settle(claimed, next, due) {
      const { lane } = parsedDelivery(claimed.body);
      const body = next && JSON.stringify(next);
      const isOver = next === undefined || statusOf(next) !== "pending";
      if (lane === undefined || !isOver) return finish(documents, claimed, { body, due });
      return leaveLane(documents, claimed, lane, { key: claimed.key, seen: claimed.version, body, due });
    },

    list: (keeper, webhook, page) => listed(documents, keeper, webhook, page),

    again: (keeper, webhook, id) =>
      change(documents, { collection: deliveriesOf(keeper), keys: [id] }, ({ found: [found], now }) => {
        const delivery = found && !isLane(id) ? parsedDelivery(found.body) : undefined;
        if (!found || delivery?.webhook !== webhook) return { result: undefined };
        // If the delivery waits for its turn or for the end of its run, it will be sent then anyway.
        if (
          statusOf(delivery) === "pending" &&
          (delivery.lane !== undefined || delivery.state === "prepared")
        )
          return { result: delivery };
        const next = again(delivery, now);
        const body = JSON.stringify(next);
        return { writes: [{ key: id, seen: found.version, body, due: now }], result: next };
      }),

    async forget(keeper, webhook) {
      const collection = deliveriesOf(keeper);
      const all = await documents.list(collection);
      const own = await mapInTicks(keeper.tenant, all, (each) => (webhookIn(each) === webhook ? [each] : []));
      await deleteAll(documents, collection, own.flat());
    },

    forgetUser: (user) => forgetUser(documents, user),
  };
}

async function forgetUser(documents: Documents, { tenant, user }: Owner): Promise<void> {
  const collection = deliveriesOf({ tenant });
  const about = async () => {
    const all = await documents.list(collection);
    const own = await mapInTicks(tenant, all, (document) => {
      const delivery = isLane(document.key) ? undefined : parsedDelivery(document.body);
      return delivery?.owner.user === user ? [{ document, lane: delivery.lane }] : [];
    });
    return own.flat();
  };
  const told = await about();
  const gone = new Set(told.map(({ document }) => document.key));
  const lanes = new Set(told.flatMap(({ lane }) => lane ?? []));
  for (const lane of lanes) await shortenLane(documents, collection, lane, gone);
  await deleteAll(
    documents,
    collection,
    told.map(({ document }) => document),
  );
  // Deletes deliveries that a process has sent or started to send in the meantime.
  for (const { document } of await about()) await remove(documents, collection, document.key);
}

async function confirm(
  documents: Documents,
  { collection, key }: DeliveryPlace,
  told: Delivery,
): Promise<void> {
  const [stored] = (await documents.read(collection, [key])).found;
  if (!stored) return;
  const keys = keysOf(key, parsedDelivery(stored.body));
  await change(documents, { collection, keys }, ({ found: [found, lane], now }) => {
    const delivery = found && parsedDelivery(found.body);
    if (!found || delivery?.state !== "prepared") return { result: undefined };
    const due = lane && queueIn(lane)[0] !== key ? null : now;
    const { lane: own } = delivery;
    const next = { ...told, lane: own, state: "pending", since: now } satisfies Delivery;
    const writes = [{ key, seen: found.version, body: JSON.stringify(next), due }];
    return { writes, result: undefined };
  });
}

async function listed(
  documents: Documents,
  keeper: Keeper,
  webhook: string,
  { limit, cursor, status }: DeliveryPage,
): Promise<Page<Delivery>> {
  const items: Delivery[] = [];
  let next = cursor;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = { order: "created" as const, limit: limit - items.length, cursor: next };
    const found = await documents.page(deliveriesOf(keeper), page);
    for (const { key, body } of found.items) {
      const delivery = isLane(key) ? undefined : parsedDelivery(body);
      if (delivery?.webhook === webhook && (status ?? statusOf(delivery)) === statusOf(delivery))
        items.push(delivery);
    }
    next = found.next_cursor;
    if (next === undefined || items.length === limit) break;
  }
  return next === undefined ? { items } : { items, next_cursor: next };
}

/** The keys of the deliveries in a lane, in order. */
interface Lane {
  readonly webhook: string;
  readonly queue: readonly string[];
}

const isLane = (key: string) => key.startsWith("lane_");
const keysOf = (key: string, { lane }: Delivery) => (lane === undefined ? [key] : [key, lane]);
// Not validated, because only this file writes these documents.
const laneIn = (lane: Document) => JSON.parse(lane.body) as Lane;
const queueIn = (lane: Document | undefined) => (lane ? laneIn(lane).queue : []);
const webhookIn = (each: Document) =>
  isLane(each.key) ? laneIn(each).webhook : parsedDelivery(each.body).webhook;

function laneWrites(
  { lane: key, webhook }: Pick<Delivery, "lane" | "webhook">,
  before: Document | undefined,
  queue: readonly string[],
): DocumentWrite[] {
  if (key === undefined) return [];
  const body = queue.length === 0 ? undefined : JSON.stringify({ webhook, queue } satisfies Lane);
  return body === undefined && !before ? [] : [{ key, seen: before?.version, body }];
}

/** Writes the final state of a delivery and makes the next one in its lane due. */
async function leaveLane(
  documents: Documents,
  { collection, key, version, body }: ClaimedDocument,
  lane: string,
  last: DocumentWrite,
): Promise<boolean> {
  const { webhook } = parsedDelivery(body);
  for (;;) {
    const { found, now } = await documents.read(collection, [key, lane]);
    if (found[0]?.version !== version) return false;
    const others = queueIn(found[1]).filter((each) => each !== key);
    const { queue, waiting } = await existing(documents, collection, others);
    const writes = [
      last,
      ...laneWrites({ lane, webhook }, found[1], queue),
      ...(waiting ? [dueNow(waiting, now)] : []),
    ];
    if ((await documents.write(collection, writes, { version: newVersion() })) === "written") return true;
  }
}

/** Removes deliveries from a lane. If this makes another delivery the first one, makes that delivery due. */
async function shortenLane(
  documents: Documents,
  collection: OwnedCollection,
  key: string,
  gone: ReadonlySet<string>,
): Promise<void> {
  for (;;) {
    const {
      found: [lane],
      now,
    } = await documents.read(collection, [key]);
    if (!lane) return;
    const { webhook, queue: before } = laneIn(lane);
    const others = before.filter((each) => !gone.has(each));
    if (others.length === before.length) return;
    const { queue, waiting } = await existing(documents, collection, others);
    const isNext = waiting !== undefined && waiting.key !== before[0];
    const writes = [
      ...laneWrites({ lane: key, webhook }, lane, queue),
      ...(isNext ? [dueNow(waiting, now)] : []),
    ];
    if ((await documents.write(collection, writes, { version: newVersion() })) === "written") return;
  }
}

/**
 * Returns the queue, starting with the first delivery that still exists, along with that delivery. Skips deleted
 * deliveries, so they do not block the lane.
 */
async function existing(
  documents: Documents,
  collection: OwnedCollection,
  queue: readonly string[],
): Promise<{ readonly queue: readonly string[]; readonly waiting: Document | undefined }> {
  const { found } = await documents.read(collection, queue.slice(0, BATCH_SIZE));
  const at = found.findIndex((each) => each !== undefined);
  return { queue: at === -1 ? [] : queue.slice(at), waiting: found[at] };
}

/** Makes a delivery due now. The period for its attempts starts now. */
function dueNow({ key, version: seen, body }: Document, now: number): DocumentWrite {
  const next = { ...parsedDelivery(body), since: now, next_at: now };
  return { key, seen, body: JSON.stringify(next), due: now };
}

/**
 * Deletes the oldest settled deliveries, except deliveries kept to prevent sending their event twice. Returns false if
 * there is nothing to delete.
 */
async function makeRoom(documents: Documents, collection: OwnedCollection): Promise<boolean> {
  const all = await documents.list(collection);
  const parsed = await mapInTicks(collection.tenant, all, (document) => {
    if (isLane(document.key)) return [];
    const { state, at, keep_until = 0 } = parsedDelivery(document.body);
    const isSettled = state === "delivered" || state === "failed";
    return isSettled && keep_until < Date.now() ? [{ document, at }] : [];
  });
  const oldest = parsed.flat().sort((a, b) => a.at - b.at);
  if (oldest.length === 0) return false;
  const count = Math.ceil(mostOf(collection) / SHARE);
  await deleteAll(
    documents,
    collection,
    oldest.slice(0, count).map(({ document }) => document),
  );
  return true;
}

/**
 * Deletes documents that have not changed since they were read. If a batch has changes, deletes its documents one by
 * one.
 */
async function deleteAll(
  documents: Documents,
  collection: OwnedCollection,
  all: readonly Document[],
): Promise<void> {
  const write = (some: readonly Document[]) =>
    documents.write(
      collection,
      some.map(({ key, version }) => ({ key, seen: version, body: undefined })),
      { version: newVersion() },
    );
  for (let at = 0; at < all.length; at += BATCH_SIZE) {
    const batch = all.slice(at, at + BATCH_SIZE);
    if ((await write(batch)) !== "written") for (const each of batch) await write([each]);
  }
}

const mostOf = ({ user }: OwnedCollection) => (user === undefined ? MAX_OF_TENANT : MAX_OF_USER);

const tooMany = () => new AppError("limit_exceeded", "Too many webhook deliveries are waiting to be sent.");
