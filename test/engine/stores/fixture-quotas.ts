// What the suites of quotas start from: a store with a clock that tests move, and what is spent.

import type { Amounts, QuotaStore, Spending } from "../../../src/engine/quotas/store.ts";

export const START = Date.parse("2026-11-21T10:00:00.000Z");
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const CAROL = { tenant: "other", user: "ada" };

export interface QuotaWorld {
  readonly quotas: QuotaStore;
  /** The same, as another process has it; on a store that one process has for itself, the same one. */
  readonly elsewhere: QuotaStore;
  setTime(time: number): void;
  advance(ms: number): void;
}

interface Opened {
  readonly quotas: QuotaStore;
  close(): void;
}

/** Opens an empty store, twice where it is shared; `now` is its clock. */
export interface OpenQuotas {
  (now: () => number): Promise<Opened & { readonly elsewhere?: Opened }>;
  /** As in `Open`. */
  readonly rules?: true;
}

export const spending = (more: Partial<Spending> = {}): Spending => ({
  ...{ agent: "helper", model: "scripted:test", cost: 7 },
  usage: { input_tokens: 60, output_tokens: 40, cache_read_tokens: 10, cache_write_tokens: 5 },
  ...more,
});
export const amounts = (tokens: number, cost = 0): Amounts => ({ tokens, cost });

/** Runs `body` with an empty store, which is closed afterwards in any case. */
export const quotasIn =
  (open: OpenQuotas) =>
  async (body: (world: QuotaWorld) => Promise<void>, start = START): Promise<void> => {
    let time = start;
    const { quotas, close, elsewhere } = await open(() => time);
    try {
      await body({
        quotas,
        elsewhere: elsewhere?.quotas ?? quotas,
        setTime: (to) => {
          time = to;
        },
        advance: (ms) => {
          time += ms;
        },
      });
    } finally {
      elsewhere?.close();
      close();
    }
  };
