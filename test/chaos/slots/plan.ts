// The schedules of the suite, and the slots that each of them owes.

import type { Random } from "../random.ts";

export const MINUTE = 60_000;

/**
 * `once` has a single slot; `each` owes a run for every slot, and so does `queued`, one after the other in one thread. Of `latest`,
 * `none` and `skipping` slots may be passed over, as their policies say.
 */
export const KINDS = ["once", "each", "queued", "latest", "none", "skipping"] as const;
export type Kind = (typeof KINDS)[number];

/** Shares of the slots. */
const SHARES: Readonly<Record<Kind, number>> = {
  ...{ once: 0.45, each: 0.3, queued: 0.02, latest: 0.08, none: 0.05, skipping: 0.1 },
};
/** A slot of these waits until a run has ended, so they have few. */
const QUEUED_SLOTS = 6;

export interface Owner {
  readonly tenant: string;
  readonly user: string;
}

export interface PlannedSchedule {
  readonly owner: Owner;
  readonly id: string;
  readonly kind: Kind;
  readonly spec: Readonly<Record<string, unknown>>;
  /** Time of the last slot that may be, in ms since 1970. */
  readonly until: number;
}

export interface Span {
  /** No single slot is before it, so that all schedules are there by then. */
  readonly from: number;
  /** No slot is after it. */
  readonly until: number;
}

const OWNERS: readonly Owner[] = ["acme", "beta", "corp"].flatMap((tenant) =>
  ["ada", "bob", "cyd", "dee"].map((user) => ({ tenant, user })),
);

/** Schedules with about so many slots in all. */
export function planSchedules(slots: number, { from, until }: Span, random: Random): PlannedSchedule[] {
  const minutes = Math.floor((until - from) / MINUTE);
  const schedules = KINDS.flatMap((kind) => {
    const each = kind === "once" ? 1 : kind === "queued" ? QUEUED_SLOTS : minutes;
    return Array.from({ length: Math.ceil((slots * SHARES[kind]) / each) }, (_, at) => `${kind}-${at}`).map(
      (id) => ({ id, kind, owner: random.pick(OWNERS) }),
    );
  });
  return schedules.map(({ id, kind, owner }) => {
    const last = kind === "queued" ? from + QUEUED_SLOTS * MINUTE : until;
    const at = random.int(from, until);
    const time = kind === "once" ? { at: iso(at) } : { cron: "* * * * *", until: iso(last) };
    return {
      ...{ id, kind, owner, until: kind === "once" ? at : last },
      spec: { ...time, input: `as ${id}`, ...POLICIES[kind], ...(kind === "queued" ? { thread: id } : {}) },
    };
  });
}

const POLICIES: Readonly<Record<Kind, object>> = {
  once: { overlap: "allow" },
  each: { overlap: "allow", catch_up: "all" },
  queued: { overlap: "queue", catch_up: "all" },
  latest: { overlap: "allow", catch_up: "latest" },
  none: { overlap: "allow", catch_up: "none" },
  skipping: { overlap: "skip", catch_up: "all" },
};

export const iso = (time: number) => new Date(time).toISOString();

export const headersOf = ({ tenant, user }: Owner) => ({
  ...{ "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": "read,run" },
});

/** The owners, each with their schedules. */
export const byOwner = (schedules: readonly PlannedSchedule[]) => [
  ...Map.groupBy(schedules, ({ owner }) => owner),
];
