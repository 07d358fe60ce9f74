// Stores triggers, their addresses and the deliveries that started runs, using the documents port.

import {
  change,
  type Documents,
  type ListedCollection,
  newVersion,
  remove,
  retain,
} from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import { type Delivery, type PauseReason, type Trigger, unfit } from "./trigger.ts";

const triggersOf = ({ tenant, user }: Owner): ListedCollection => ({ kind: "triggers", tenant, user });
const logsOf = ({ tenant, user }: Owner): ListedCollection => ({ kind: "trigger_logs", tenant, user });
const startedOf = ({ tenant, user }: Owner): ListedCollection => ({ kind: "trigger_runs", tenant, user });
const ADDRESSES: ListedCollection = { kind: "trigger_addresses" };

/** How long the server recognizes a repeated delivery, and how many deliveries it remembers per user. */
const STARTED = { ms: 25 * 3_600_000, count: 50_000 };
/**
 * How many deliveries a trigger shows, and how many of these can be refused. The second limit prevents strangers from
 * displacing the other deliveries.
 */
const MAX_SHOWN = 20;
const MAX_REFUSED = 5;

export interface KeptTrigger {
  readonly trigger: Trigger;
  readonly version: string;
}

/** A trigger and its version. */
export interface TriggerPlace {
  readonly owner: Owner;
  readonly id: string;
  readonly version: string;
}

/** The run that a delivery started. */
export interface StartedRun {
  readonly thread_id: string;
  readonly run_id: string;
}

/**
 * Throws unless the trigger has the version that the caller expects. An undefined version means that the trigger does
 * not exist.
 */
export type Expect = (version: string | undefined) => void;

/**
 * Returns the new state of a trigger, which may not exist yet. `now` is the store's time, in milliseconds since 1970.
 */
type Update = (before: Trigger | undefined, now: number) => Omit<Trigger, "id" | "address">;

export interface TriggerStore {
  /**
   * Creates or replaces a trigger. A replaced trigger keeps its address. Throws `limit_exceeded` if there are too many
   * triggers.
   */
  put(
    owner: Owner,
    id: string,
    update: Update,
    expect: Expect,
  ): Promise<KeptTrigger & { readonly isNew: boolean }>;
  /** Returns undefined if the trigger does not exist. */
  change(
    owner: Owner,
    id: string,
    update: (before: Trigger, now: number) => Trigger,
  ): Promise<KeptTrigger | undefined>;
  get(owner: Owner, id: string): Promise<KeptTrigger | undefined>;
  /** Returns the triggers of a user, newest first. */
  list(owner: Owner, page: { limit: number; cursor?: string | undefined }): Promise<Page<Trigger>>;
  /** Returns false if the trigger does not exist. */
  delete(owner: Owner, id: string, expect: Expect): Promise<boolean>;
  /** Deletes all triggers of a user. Returns the number deleted. */
  erase(owner: Owner): Promise<number>;
  /** Returns the trigger with this address, and its owner. */
  at(address: string): Promise<(KeptTrigger & { readonly owner: Owner }) | undefined>;
  /**
   * Pauses the trigger if it is still at this version and its key has ended or its agent has been missing for too long.
   * Returns the stored trigger.
   */
  unfit(place: TriggerPlace, reason: Omit<PauseReason, "at">): Promise<Trigger | undefined>;
  /** Records that the trigger's agent was found again. */
  recovered(place: TriggerPlace): Promise<void>;

  /** Returns the run that a delivery has started. */
  started(owner: Owner, id: string, deliveryKey: string): Promise<StartedRun | undefined>;
  /** Returns false, and stores nothing, if the trigger was deleted in the meantime. */
  keepStarted(owner: Owner, id: string, deliveryKey: string, run: StartedRun): Promise<boolean>;
  /** Returns the deliveries of a trigger, newest first. */
  deliveries(owner: Owner, id: string): Promise<Delivery[]>;
  /** Adds deliveries, which must be sorted oldest first, and deletes old ones. */
  log(owner: Owner, id: string, deliveries: readonly Delivery[]): Promise<void>;
}

export function createTriggerStore(documents: Documents, most: number): TriggerStore {
  const read = async (owner: Owner, id: string): Promise<KeptTrigger | undefined> => {
    const [found] = (await documents.read(triggersOf(owner), [id])).found;
    return found && { trigger: triggerIn(found.body), version: found.version };
  };
  const forget = async (owner: Owner, { id, address }: Trigger) => {
    await remove(documents, ADDRESSES, address);
    await remove(documents, logsOf(owner), id);
  };
  return {
    get: read,
    put: (owner, id, update, expect) => put(documents, most, { owner, id, update, expect }),
    change: (owner, id, update) =>
      change(documents, { collection: triggersOf(owner), keys: [id] }, ({ found: [found], now, version }) => {
        if (!found) return { result: undefined };
        const trigger = update(triggerIn(found.body), now);
        const writes = [{ key: id, seen: found.version, body: JSON.stringify(trigger) }];
        return { writes, result: { trigger, version } };
      }),
    async list(owner, page) {
      const { items, next_cursor } = await documents.page(triggersOf(owner), { order: "created", ...page });
      return { items: items.map(({ body }) => triggerIn(body)), ...omitUndefined({ next_cursor }) };
    },
    async delete(owner, id, expect) {
      const gone = await change(
        documents,
        { collection: triggersOf(owner), keys: [id] },
        ({ found: [found] }) => {
          if (!found) return { result: undefined };
          expect(found.version);
          const writes = [{ key: id, seen: found.version, body: undefined }];
          return { writes, result: triggerIn(found.body) };
        },
      );
      if (gone) await forget(owner, gone);
      return gone !== undefined;
    },
    async erase(owner) {
      const all = await documents.list(triggersOf(owner));
      for (const { key, body } of all) {
        await remove(documents, triggersOf(owner), key);
        await forget(owner, triggerIn(body));
      }
      for (const collection of [logsOf(owner), startedOf(owner)])
        await retain(documents, collection, { count: 0 });
      return all.length;
    },
    async at(address) {
      const [place] = (await documents.read(ADDRESSES, [address])).found;
      if (!place) return undefined;
      const { id, ...owner } = placeIn(place.body);
      const kept = await read(owner, id);
      // A process that died while creating or deleting a trigger may have left its address behind.
      return kept?.trigger.address === address ? { owner, ...kept } : undefined;
    },
    unfit: (place, reason) => replaced(documents, place, (before, now) => unfit(before, reason, now)),
    recovered: (place) => recovered(documents, place),
    ...logOf(documents, async (owner, id) => (await read(owner, id)) !== undefined),
  };
}

/** Replaces a trigger that is still at its version. Returns the stored trigger. */
const replaced = (
  documents: Documents,
  { owner, id, version: seen }: TriggerPlace,
  next: (before: Trigger, now: number) => Trigger,
): Promise<Trigger | undefined> =>
  change(documents, { collection: triggersOf(owner), keys: [id] }, ({ found: [found], now }) => {
    const before = found && triggerIn(found.body);
    if (!before || found.version !== seen) return { result: before };
    const trigger = next(before, now);
    return { writes: [{ key: id, seen: found.version, body: JSON.stringify(trigger) }], result: trigger };
  });

async function recovered(documents: Documents, place: TriggerPlace): Promise<void> {
  await replaced(documents, place, ({ missing_since: _, ...trigger }) => trigger);
}

interface Put {
  readonly owner: Owner;
  readonly id: string;
  readonly update: Update;
  readonly expect: Expect;
}

/** Stores the address of a new trigger before the trigger, so every trigger that its user can see has an address. */
async function put(documents: Documents, most: number, { owner, id, update, expect }: Put) {
  const limit = { count: most, error: () => tooMany(most) };
  let made: string | undefined;
  let used: string | undefined;
  const newAddress = async () => {
    made ??= randomId();
    const body = JSON.stringify({ tenant: owner.tenant, user: owner.user, id });
    await change(documents, { collection: ADDRESSES, keys: [made] }, ({ found: [found] }) =>
      found
        ? { result: undefined }
        : { writes: [{ key: made ?? "", seen: undefined, body }], result: undefined },
    );
    return made;
  };
  try {
    const kept = await change(
      documents,
      { collection: triggersOf(owner), keys: [id], limit },
      async ({ found: [found], now, version }) => {
        expect(found?.version);
        const before = found && triggerIn(found.body);
        const address = before?.address ?? (await newAddress());
        const trigger: Trigger = { ...update(before, now), id, address };
        const writes = [{ key: id, seen: found?.version, body: JSON.stringify(trigger) }];
        return { writes, result: { trigger, version, isNew: found === undefined } };
      },
    );
    used = kept.trigger.address;
    return kept;
  } finally {
    if (made !== undefined && made !== used) await remove(documents, ADDRESSES, made);
  }
}

/** Writes the deliveries of triggers. If the trigger was deleted in the meantime, deletes what was written. */
function logOf(
  documents: Documents,
  exists: (owner: Owner, id: string) => Promise<boolean>,
): Pick<TriggerStore, "started" | "keepStarted" | "deliveries" | "log"> {
  return {
    async started(owner, id, deliveryKey) {
      const [found] = (await documents.read(startedOf(owner), [`${id}/${deliveryKey}`])).found;
      return found && startedIn(found.body);
    },
    async keepStarted(owner, id, deliveryKey, { thread_id, run_id }) {
      const write = {
        key: `${id}/${deliveryKey}`,
        seen: undefined,
        body: JSON.stringify({ thread_id, run_id }),
      };
      // `changed` means that another process has written the same document.
      await documents.write(startedOf(owner), [write], { version: newVersion() });
      if (await exists(owner, id)) return true;
      await remove(documents, startedOf(owner), write.key);
      return false;
    },
    async deliveries(owner, id) {
      const [found] = (await documents.read(logsOf(owner), [id])).found;
      return found ? logIn(found.body) : [];
    },
    async log(owner, id, deliveries) {
      await change(documents, { collection: logsOf(owner), keys: [id] }, ({ found: [found] }) => {
        const all = [...deliveries.toReversed(), ...(found ? logIn(found.body) : [])];
        const body = JSON.stringify(shownOf(all));
        return { writes: [{ key: id, seen: found?.version, body }], result: undefined };
      });
      if (!(await exists(owner, id))) await remove(documents, logsOf(owner), id);
      await documents.trim(startedOf(owner), STARTED);
    },
  };
}

/** Returns the newest deliveries, with a limit on refused deliveries. */
export function shownOf(deliveries: readonly Delivery[]): Delivery[] {
  let refused = 0;
  const isShown = ({ outcome }: Delivery) => outcome !== "refused" || ++refused <= MAX_REFUSED;
  return deliveries.filter(isShown).slice(0, MAX_SHOWN);
}

// Not validated, because only this file writes these documents.
const triggerIn = (body: string) => JSON.parse(body) as Trigger;
const placeIn = (body: string) => JSON.parse(body) as Owner & { readonly id: string };
const startedIn = (body: string) => JSON.parse(body) as StartedRun;
const logIn = (body: string) => JSON.parse(body) as Delivery[];

const tooMany = (most: number) =>
  new AppError(
    "limit_exceeded",
    `You have ${most} triggers, the maximum (limits.triggers). Delete one first.`,
    {
      details: { limit: "limits.triggers", most },
    },
  );
