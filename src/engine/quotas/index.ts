// Compares the usage of tenants and users with their limits. A refusal has the code `limit_exceeded`; its details
// contain the limit, its scope (`of`), its value and when to retry.

import type { OwnedCollection } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { ModelCallQuotas, PlannedSearches } from "../../agent/core/hook.ts";
import { NO_USAGE, searchesOf, type Usage } from "../../agent/core/message.ts";
import { modelMatcher } from "../../agent/core/model.ts";
import { plausible } from "../../agent/core/usage-meter.ts";
import { type Logger, SILENT } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { LimitName, Price, QuotaConfig } from "./config.ts";
import { type ExpectedRun, expectedCalls } from "./expected-calls.ts";
import { budgetStates, LIMIT_OF, type LimitState, limitStates, type ReportedLimit } from "./limit-states.ts";
import { amountOf } from "./money.ts";
import { type BudgetState, onceAPeriod } from "./near.ts";
import { nearlyUsed, refusal } from "./refusals.ts";
import { KeptReservations, RESERVED_MS } from "./reservations.ts";
import {
  type Accounts,
  type Amounts,
  BUDGETS,
  type HeldResource,
  type QuotaScope,
  type QuotaStore,
  type Resource,
  SCOPES,
  type TenantUsage,
  tokensOf,
  type UsageRow,
} from "./store.ts";

/** Every method throws `unavailable` if the store cannot be reached. Without limits, no method calls the store. */
export interface Quotas extends ModelCallQuotas {
  /** Counts a request. Throws `limit_exceeded`. */
  request(owner: Owner): Promise<void>;
  /** Returns true if there is a limit on this resource. Resources without limits are not counted. */
  counts(thing: Resource | "stored_bytes"): boolean;
  /**
   * Counts a resource until it is released or its hold expires. A repeated call restarts the hold. A new thread counts
   * for `MAKING_MS`, until it exists and is refreshed. Returns true if the resource is new. Throws `limit_exceeded`.
   */
  acquire(owner: Owner, thing: Resource, id: string): Promise<boolean>;
  /** Like `acquire`, but for an existing resource, which is counted even if it exceeds a limit. */
  refresh(owner: Owner, thing: Resource, id: string): Promise<void>;
  /** Releases an acquired resource whose creation failed, unless another call has created it in the meantime. */
  withdraw(owner: Owner, thing: Resource, id: string): Promise<void>;
  /**
   * Counts a run that waits for its thread or a slot. The hold lasts for an hour, because nothing refreshes it before
   * the run starts. Returns false if runs are not limited.
   */
  keepWaiting(owner: Owner, run: string): Promise<boolean>;
  release(owner: Owner, thing: Resource, id: string): Promise<void>;
  /**
   * Replaces the counted bytes of a thread's messages. Throws `limit_exceeded` if they grow beyond a limit.
   * The bytes count for `ms` milliseconds. By default, they count for as long as an unused thread is kept.
   */
  setStored(owner: Owner, threadId: string, bytes: number, ms?: number): Promise<void>;
  /** Like `setStored`, but for bytes that are already stored, which are counted even if they exceed a limit. */
  recordStored(owner: Owner, threadId: string, bytes: number): Promise<void>;
  /**
   * Replaces the counted bytes of a document collection, for its tenant and its user, if any. Throws `limit_exceeded`
   * if they grow beyond a limit, unless they are already stored.
   */
  setDocumentsStored(
    collection: OwnedCollection,
    bytes: number,
    options?: { readonly areStored?: boolean },
  ): Promise<void>;
  /** Throws `limit_exceeded` if a run could not afford a single model call. `expected` is the run, if known. */
  assertFunds(owner: Owner, expected?: ExpectedRun): Promise<void>;
  /** Returns the cost of a call in millionths of the currency, or undefined if its model has no price. */
  costOf(model: string, usage: Usage): number | undefined;
  /** Returns the user's own usage, and every limit that applies to it. */
  report(owner: Owner, days: number): Promise<{ usage: UsageRow[]; limits: ReportedLimit[] }>;
  /** Returns the usage of all users of the owner's tenant, and the tenant's limits. */
  reportTenant(owner: Owner, days: number): Promise<TenantUsage & { limits: ReportedLimit[] }>;
  /** The currency of limits and prices, if the settings name one. */
  readonly currency: string | undefined;
}

export interface QuotaOptions {
  /** The number of milliseconds for which an unused thread is kept and counted. */
  readonly threadMs: number;
  /** Defaults to `SILENT`. */
  readonly logger?: Logger;
  /** Called when a model call finds that most of a budget is used, once per budget and period in this process. Must return at once and not throw. */
  onNear?(owner: Owner, state: BudgetState): void;
}

const HOUR = 3_600_000;
const CENTURY = 100 * 365 * 24 * HOUR;
/** The number of milliseconds for which an active resource counts after a refresh. */
export const KEPT_MS = 60_000;
/** The number of milliseconds for which a thread counts while it is being created, longer than creation takes. */
export const MAKING_MS = 10 * 60_000;
/** The tokens of the shortest useful answer. A call that could get fewer tokens is refused. */
const LEAST_ANSWER = 256;
/** The maximum number of immediate attempts to make a reservation that other calls interfere with. */
const MAX_ATTEMPTS = 4;

/** The number of milliseconds to suggest for a retry if the right time is unknown. */
const RETRY_MS = { runs: 5_000, streams: 5_000, threads: 60_000 } as const;

export function createQuotas(
  store: QuotaStore,
  config: QuotaConfig,
  { threadMs, logger = SILENT, onNear }: QuotaOptions,
): Quotas {
  const most = (limit: LimitName) => ({ tenant: config.tenant[limit], user: config.user[limit] });
  const isLimited = (limit: LimitName) => SCOPES.some((level) => config[level][limit] !== undefined);
  const hasBudgets = BUDGETS.some(({ limit }) => isLimited(limit));
  const priceOn = pricing(config.prices);
  const priceFor = (model: string) => priceOn(model) ?? FREE;
  const threadLife = Math.min(Math.max(threadMs, KEPT_MS), CENTURY);
  const kept = new KeptReservations(store, logger);
  const calls = expectedCalls();
  const tell = onNear && onceAPeriod(config, onNear);
  const refusedCall = (owner: Owner, run: ExpectedRun, accounts: Accounts): AppError | undefined => {
    const call = calls.of(owner, run);
    if (!call) return undefined;
    const { model, least, ...planned } = call;
    const left = answerLeft(config, accounts, { ...planned, price: priceFor(model), among: "spent" });
    return left < least ? tooLarge(config, accounts, planned) : undefined;
  };
  const lives: Readonly<
    Record<Resource, Omit<HeldResource, "thing" | "id"> & { readonly makingMs?: number }>
  > = {
    runs: { ms: KEPT_MS, longestMs: HOUR },
    streams: { ms: KEPT_MS, longestMs: KEPT_MS },
    threads: { ms: threadLife, makingMs: MAKING_MS },
  };

  return {
    currency: config.currency,

    async request(owner) {
      if (!isLimited("requests_per_minute")) return;
      const refused = await store.take(owner, most("requests_per_minute"));
      if (refused) throw exceeded(config, "requests_per_minute", refused.full, refused.wait_ms);
    },

    counts: (thing) => isLimited(thing === "stored_bytes" ? thing : LIMIT_OF[thing]),

    async acquire(owner, thing, id) {
      const limit = LIMIT_OF[thing];
      if (!isLimited(limit)) return false;
      const answer = await store.hold(owner, { thing, id, ...lives[thing] }, most(limit));
      if (answer === "new" || answer === "kept") return answer === "new";
      throw exceeded(config, limit, answer, RETRY_MS[thing]);
    },

    async refresh(owner, thing, id) {
      if (!isLimited(LIMIT_OF[thing])) return;
      const { ms } = lives[thing];
      await store.hold(owner, { thing, id, ms }, { tenant: undefined, user: undefined });
    },

    async withdraw(owner, thing, id) {
      if (isLimited(LIMIT_OF[thing])) await store.release(owner, thing, id, lives[thing].makingMs);
    },

    async keepWaiting(owner, run) {
      if (!isLimited("concurrent_runs")) return false;
      await store.hold(owner, { thing: "runs", id: run, ms: HOUR }, { tenant: undefined, user: undefined });
      return true;
    },

    async release(owner, thing, id) {
      if (isLimited(LIMIT_OF[thing])) await store.release(owner, thing, id);
    },

    async setStored(owner, id, bytes, ms = threadLife) {
      if (!isLimited("stored_bytes")) return;
      const full = await store.setStored(owner, { id, bytes, ms }, most("stored_bytes"));
      if (full) throw exceeded(config, "stored_bytes", full, 0);
    },

    async recordStored(owner, id, bytes) {
      if (!isLimited("stored_bytes")) return;
      await store.setStored(owner, { id, bytes, ms: threadLife }, { tenant: undefined, user: undefined });
    },

    async setDocumentsStored({ kind, tenant, user }, bytes, { areStored = false } = {}) {
      if (!isLimited("stored_bytes")) return;
      const { tenant: ofTenant, user: ofUser } = most("stored_bytes");
      const limits = areStored
        ? { tenant: undefined, user: undefined }
        : { tenant: ofTenant, user: user === undefined ? undefined : ofUser };
      const stored = { id: `documents:${kind}`, bytes, ms: CENTURY };
      const full = await store.setStored({ tenant, user: user ?? "" }, stored, limits);
      if (full) throw exceeded(config, "stored_bytes", full, 0);
    },

    async assertFunds(owner, expected) {
      if (!hasBudgets) return;
      const accounts = await store.accounts(owner);
      const error = spentOf(config, accounts) ?? (expected && refusedCall(owner, expected, accounts));
      if (error) throw error;
    },

    async reserve(owner, { model, caller, size, takesLess }) {
      const id = randomId();
      if (!hasBudgets) return { isGranted: true, id };
      const price = priceFor(model);
      const { input, output: most, fixed = 0, searches: planned } = size();
      const { least: leastSearches, most: mostSearches } = planned ?? NO_SEARCHES;
      const least = Math.min(most, LEAST_ANSWER);
      if (caller) calls.note(owner, caller, { model, input, fixed, least, searches: leastSearches });
      for (let output = most, searches = mostSearches, attempt = 1; ; attempt++) {
        const reservation = { id, amounts: amountsOf({ input, output, searches }, price), ms: RESERVED_MS };
        const { isGranted, accounts } = await store.reserve(owner, reservation, config);
        const near = nearOf(config, accounts);
        tell?.(owner, near);
        if (isGranted) {
          kept.add(owner, id);
          const [first] = near;
          return {
            isGranted,
            id,
            outputLimit: output,
            ...(planned ? { searchLimit: searches } : {}),
            ...(first ? { soft: nearlyUsed(first, config) } : {}),
          };
        }
        const answer = (among: "spent" | "reserved") =>
          answerLeft(config, accounts, { input, searches, price, among });
        while (searches > leastSearches && answer(takesLess ? "reserved" : "spent") < least) searches--;
        const left = Math.min(answer("spent"), most);
        if (left < least)
          return {
            isGranted,
            isSpent: true,
            error:
              spentOf(config, accounts) ?? tooLarge(config, accounts, { input, searches: leastSearches }),
          };
        output = Math.min(answer("reserved"), most);
        // Other calls may use up the remaining budget between two attempts.
        if (output < (takesLess ? least : left) || attempt === MAX_ATTEMPTS)
          return { isGranted, isSpent: false, error: taken() };
      }
    },

    async settle(owner, id, call) {
      kept.remove(id);
      if (!call) return hasBudgets ? store.settle(owner, id, undefined) : undefined;
      const usage = plausible(call.usage);
      await store.settle(owner, id, { ...call, usage, cost: priceOf(priceFor(call.model), usage) });
    },

    costOf(model, usage) {
      const price = priceOn(model);
      return price && priceOf(price, plausible(usage));
    },

    async report(owner, days) {
      const [usage, limits] = await Promise.all([
        store.usage(owner, days),
        limitStates(store, config, owner),
      ]);
      return { usage, limits };
    },

    async reportTenant(owner, days) {
      const [used, limits] = await Promise.all([
        store.tenantUsage(owner.tenant, days),
        limitStates(store, config, owner),
      ]);
      return { ...used, limits: limits.filter(({ of }) => of === "tenant") };
    },
  };
}

const NO_SEARCHES: PlannedSearches = { most: 0, least: 0 };

interface PlannedInput {
  readonly input: number;
  readonly searches: number;
  readonly price: Price;
}

type PlannedAmounts = Omit<PlannedInput, "price"> & { readonly output: number };

/** Assumes the higher of the two input prices: uncached, or written to the cache. */
function amountsOf({ input, output, searches }: PlannedAmounts, price: Price): Amounts {
  const usage = { ...NO_USAGE, input_tokens: input, output_tokens: output, ...searchesOf(searches) };
  return { tokens: tokensOf(usage), cost: priceOf({ ...price, input: dearest(price) }, usage) };
}

const dearest = ({ input, cache_write = input }: Price) => Math.max(input, cache_write);

/** Returns the longest answer that every budget can pay for, after deducting spending and, optionally, reservations. */
function answerLeft(
  config: QuotaConfig,
  accounts: Accounts,
  { input, searches, price, among }: PlannedInput & { readonly among: "spent" | "reserved" },
): number {
  const lefts = SCOPES.flatMap((of) => {
    const { reserved, ...spent } = accounts[of];
    return BUDGETS.map(({ limit, period, unit }) => {
      const most = config[of][limit];
      if (most === undefined) return Number.POSITIVE_INFINITY;
      const left = most - spent[period][unit] - (among === "reserved" ? reserved[unit] : 0);
      if (left <= 0) return 0;
      if (unit === "tokens") return left - input;
      const money = (left - searches * (price.web_search ?? 0)) * MILLION - input * dearest(price);
      if (price.output === 0) return money < 0 ? 0 : Number.POSITIVE_INFINITY;
      return Math.floor(money / price.output);
    });
  });
  return Math.max(0, ...[Math.min(...lefts)]);
}

/** Returns the error for the first budget that has too little left for any model call. */
function spentOf(config: QuotaConfig, accounts: Accounts): AppError | undefined {
  const least = (limit: LimitName) => (limit.startsWith("tokens") ? LEAST_ANSWER : 1);
  const spent = budgetStates(config, accounts).find(({ limit, left }) => left < least(limit));
  return spent && tooLittle(spent, accounts, "for a model call", config);
}

/** Returns the error for a call that exceeds the remaining budget. Names the budget with the smallest fraction left. */
function tooLarge(
  config: QuotaConfig,
  accounts: Accounts,
  { input, searches }: Omit<PlannedInput, "price">,
): AppError {
  const [tightest] = budgetStates(config, accounts).toSorted((a, b) => a.left / a.most - b.left / b.most);
  const searching =
    searches === 0 ? "" : ` and ${searches === 1 ? "a web search" : `${searches} web searches`}`;
  const what = `for a model call with about ${input} tokens of input${searching}`;
  return tightest ? tooLittle(tightest, accounts, what, config) : taken();
}

function tooLittle(state: LimitState, { now }: Accounts, what: string, config: QuotaConfig): AppError {
  const { limit, left, resets_at } = state;
  const why = left === 0 ? "is reached" : `has ${amountOf(limit, left)} left, too little ${what}`;
  return refusal(state, why, Date.parse(resets_at ?? "") - now, config);
}

/** Returns the budgets whose usage exceeds the soft limit. */
function nearOf(config: QuotaConfig, accounts: Accounts): LimitState[] {
  if (config.soft === 1) return [];
  return budgetStates(config, accounts).filter(({ used, most }) => used >= config.soft * most);
}

function exceeded(config: QuotaConfig, limit: LimitName, of: QuotaScope, wait: number): AppError {
  return refusal({ limit, of, most: config[of][limit] }, "is reached", wait, config);
}

function taken(): AppError {
  return new AppError("limit_exceeded", "The rest of a budget is reserved for other model calls.");
}

/** The maximum number of cached prices. */
const MAX_NAMES = 256;
const MILLION = 1_000_000;

const FREE: Price = { input: 0, output: 0 };

function pricing(prices: Readonly<Record<string, Price>>): (model: string) => Price | undefined {
  const patterns = Object.entries(prices).map(([pattern, price]) => ({
    matches: modelMatcher(pattern),
    price,
  }));
  const exact = new Map(Object.entries(prices));
  const known = new Map<string, Price | undefined>();
  const find = (model: string) => exact.get(model) ?? patterns.find(({ matches }) => matches(model))?.price;
  return (model) => {
    if (patterns.length === 0) return undefined;
    const price = known.has(model) ? known.get(model) : find(model);
    if (known.size >= MAX_NAMES) known.clear();
    known.set(model, price);
    return price;
  };
}

/** Returns whole millionths, rounded up. */
function priceOf(price: Price, usage: Usage): number {
  const { input, output, cache_read = input, cache_write = input, web_search = 0 } = price;
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, web_searches = 0 } = usage;
  const fresh = Math.max(0, input_tokens - cache_read_tokens - cache_write_tokens);
  const sum =
    fresh * input +
    output_tokens * output +
    cache_read_tokens * cache_read +
    cache_write_tokens * cache_write;
  return Math.ceil(sum / MILLION) + web_searches * web_search;
}
