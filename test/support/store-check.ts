// What `skein store check` finds in the stores of a test, which a server may still use.

import { expect } from "vitest";
import { type CheckCounts, checkStore } from "../../src/engine/stores/check/check.ts";
import type { Inspection } from "../../src/engine/stores/check/facts.ts";
import type { Finding } from "../../src/engine/stores/check/rules.ts";
import { inspectPostgres } from "../../src/engine/stores/postgres/on-demand.ts";
import { inspectRedis } from "../../src/engine/stores/redis/on-demand.ts";
import { inspectSqlite } from "../../src/engine/stores/sqlite/inspection.ts";
import type { Open } from "../engine/stores/fixture.ts";
import type { SharedStore } from "./shared-stores.ts";

export type StorePlace =
  | { readonly sqlite: string }
  | { readonly redis: string }
  | { readonly postgres: string };

/** `where`: the url of a database, or a data folder. */
export const placeOf = (kind: SharedStore["kind"] | undefined, where: string): StorePlace =>
  kind === undefined ? { sqlite: where } : kind === "redis" ? { redis: where } : { postgres: where };

const DAY = { eventsMs: 86_400_000 };

/** The caller closes it. */
export const inspectionOf = (place: StorePlace): Promise<Inspection> =>
  "sqlite" in place
    ? inspectSqlite(place.sqlite, DAY)
    : "redis" in place
      ? inspectRedis(place.redis, DAY)
      : inspectPostgres(place.postgres, DAY);

/** All findings, and what was looked at. */
export async function checked(place: StorePlace): Promise<{ findings: Finding[]; checked: CheckCounts }> {
  const store = await inspectionOf(place);
  try {
    const findings: Finding[] = [];
    const all = checkStore(store, { signal: new AbortController().signal, againMs: 100 });
    for (;;) {
      const { value, done } = await all.next();
      if (done) return { findings, checked: value };
      findings.push(value);
    }
  } finally {
    await store.close();
  }
}

/** As `open`; closing fails when what is left in the store contradicts itself, except by the rule `passedOver`. */
export function checkedAfter(
  open: Open,
  place: () => StorePlace,
  passedOver: Finding["rule"] | "" = "",
): Open {
  const checking =
    (opening: (...options: Parameters<Open>) => ReturnType<Open>): Open =>
    async (options) => {
      const stores = await opening(options);
      const opened = place();
      return {
        ...stores,
        async close() {
          await stores.close();
          const { findings } = await checked(opened);
          expect(findings.filter(({ rule }) => rule !== passedOver)).toEqual([]);
        },
      };
    };
  return Object.assign(checking(open), { ...open }, open.again && { again: checking(open.again) });
}

/** What contradicts itself, one a line; nothing in a store that is whole. */
export async function contradictionsIn(place: StorePlace): Promise<string[]> {
  const { findings } = await checked(place);
  return findings.map(({ rule, text, thread = "", run = "" }) => [rule, thread, run, text].join(" "));
}
