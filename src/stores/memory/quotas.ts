// Quotas in memory, gone with the process.

import type { Owner } from "../../core/ids.ts";
import { NO_USAGE } from "../../core/message.ts";
import {
  type Account,
  type Accounts,
  type Amounts,
  dayOf,
  firstDay,
  hasRoom,
  LEVELS,
  MAX_ROWS,
  monthOf,
  NOTHING,
  OTHER,
  type QuotaStore,
  type Spending,
  sortedRows,
  type Thing,
  tokensOf,
  USAGE_DAYS,
  type UsageRow,
} from "../../quotas/store.ts";
import { namesOf } from "../quota-names.ts";
import { requestRate } from "../request-rate.ts";

/** Tenants and users whose use is known. Past it who has used nothing for longest begins anew. */
const MAX_NAMES = 100_000;

interface Spent {
  readonly day: string;
  readonly month: string;
  readonly inDay: Amounts;
  readonly inMonth: Amounts;
}

interface Reserved {
  readonly names: readonly string[];
  readonly amounts: Amounts;
  readonly ends: number;
}

/** The user's days, each with its rows by agent and model. */
type Days = Map<string, Map<string, UsageRow>>;

/** `assertOpen` throws `unavailable` once nothing may be asked any more. */
export function memoryQuotas(now: () => number = Date.now, assertOpen = () => {}): QuotaStore {
  const held = new Map<string, Map<string, number>>();
  const reserved = new Map<string, Reserved>();
  const spent = new Map<string, Spent>();
  const usage = new Map<string, Days>();
  const take = requestRate(now);

  return {
    async take(owner, perMinute) {
      assertOpen();
      return take(owner, perMinute);
    },

    async hold(owner, { thing, id, ms }, most) {
      assertOpen();
      const places = placesOf(owner, thing, id);
      const isNew = !live(places.tenant.name).has(places.tenant.id);
      const full = LEVELS.find((level) => live(places[level].name).size >= (most[level] ?? Infinity));
      if (isNew && full) return full;
      for (const { name, id: each } of [places.tenant, places.user])
        held.set(name, live(name).set(each, now() + ms));
      return isNew ? "new" : "kept";
    },

    async release(owner, thing, id) {
      assertOpen();
      const places = placesOf(owner, thing, id);
      for (const { name, id: each } of [places.tenant, places.user]) {
        held.get(name)?.delete(each);
        live(name);
      }
    },

    async held(owner) {
      assertOpen();
      const count = (level: "tenant" | "user") => {
        const of = (thing: Thing) => live(placesOf(owner, thing, "")[level].name).size;
        return { runs: of("runs"), streams: of("streams"), threads: of("threads") };
      };
      return { tenant: count("tenant"), user: count("user") };
    },

    async reserve(owner, { id, amounts, ms }, budgets) {
      assertOpen();
      const before = accountsOf(owner);
      const isGranted = LEVELS.every((level) => hasRoom(before[level], budgets[level]));
      if (isGranted) reserved.set(id, { names: Object.values(namesOf(owner)), amounts, ends: now() + ms });
      return { isGranted, accounts: isGranted ? accountsOf(owner) : before };
    },

    async settle(owner, id, spending) {
      assertOpen();
      reserved.delete(id);
      if (!spending) return;
      const amounts = { tokens: tokensOf(spending.usage), cost: spending.cost };
      for (const name of Object.values(namesOf(owner))) {
        const before = spentBy(name);
        const [inDay, inMonth] = [sum(before.inDay, amounts), sum(before.inMonth, amounts)];
        put(spent, name, { ...before, inDay, inMonth });
      }
      count(owner, spending);
    },

    async accounts(owner) {
      assertOpen();
      return accountsOf(owner);
    },

    async usage(owner, days) {
      assertOpen();
      const first = firstDay(now(), days);
      const own = usage.get(namesOf(owner).user) ?? new Map();
      const rows = [...own].flatMap(([day, ofDay]) => (day >= first ? [...ofDay.values()] : []));
      return sortedRows(rows);
    },
  };

  /** What is held there, without what is over. */
  function live(name: string): Map<string, number> {
    const ids = held.get(name) ?? new Map<string, number>();
    for (const [id, ends] of ids) if (ends <= now()) ids.delete(id);
    if (ids.size === 0) held.delete(name);
    return ids;
  }

  function spentBy(name: string): Spent {
    const [day, month] = [dayOf(now()), monthOf(now())];
    const old = spent.get(name);
    return {
      ...{ day, month },
      inDay: old?.day === day ? old.inDay : NOTHING,
      inMonth: old?.month === month ? old.inMonth : NOTHING,
    };
  }

  function accountsOf(owner: Owner): Accounts {
    for (const [id, { ends }] of reserved) if (ends <= now()) reserved.delete(id);
    const account = (name: string): Account => {
      const { inDay, inMonth } = spentBy(name);
      const own = [...reserved.values()].filter(({ names }) => names.includes(name));
      const total = own.reduce((all, { amounts }) => sum(all, amounts), NOTHING);
      return { day: inDay, month: inMonth, reserved: total };
    };
    const { tenant, user } = namesOf(owner);
    return { now: now(), tenant: account(tenant), user: account(user) };
  }

  function count(owner: Owner, { agent, model, usage: used, cost }: Spending): void {
    const { user } = namesOf(owner);
    const days: Days = usage.get(user) ?? new Map();
    put(usage, user, days);
    const first = firstDay(now(), USAGE_DAYS);
    for (const day of days.keys()) if (day < first) days.delete(day);
    const today = dayOf(now());
    const rows = days.get(today) ?? new Map<string, UsageRow>();
    days.set(today, rows);
    const isFull = rows.size >= MAX_ROWS && !rows.has(JSON.stringify([agent, model]));
    const names = isFull ? { agent: OTHER, model: OTHER } : { agent, model };
    const name = JSON.stringify([names.agent, names.model]);
    const old = rows.get(name) ?? { day: today, ...names, calls: 0, cost: 0, ...NO_USAGE };
    rows.set(name, added(old, used, cost));
  }
}

function added(row: UsageRow, used: Spending["usage"], cost: number): UsageRow {
  return {
    ...row,
    calls: row.calls + 1,
    cost: row.cost + cost,
    input_tokens: row.input_tokens + used.input_tokens,
    output_tokens: row.output_tokens + used.output_tokens,
    cache_read_tokens: row.cache_read_tokens + used.cache_read_tokens,
    cache_write_tokens: row.cache_write_tokens + used.cache_write_tokens,
  };
}

function placesOf(owner: Owner, thing: Thing, id: string) {
  const { tenant, user } = namesOf(owner);
  return {
    // Users may choose the same ids.
    tenant: { name: `${thing} ${tenant}`, id: `${user} ${id}` },
    user: { name: `${thing} ${user}`, id },
  };
}

const sum = (a: Amounts, b: Amounts): Amounts => ({ tokens: a.tokens + b.tokens, cost: a.cost + b.cost });

function put<V>(map: Map<string, V>, name: string, value: V): void {
  map.delete(name);
  map.set(name, value);
  const [oldest] = map.keys();
  if (map.size > MAX_NAMES && oldest !== undefined) map.delete(oldest);
}
