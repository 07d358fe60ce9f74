// Budgets and usage in tables. Each call is counted at once, whereas SQLite counts several calls together.

import { dayOf, firstKeptDay, hasOwnRow, monthOf } from "../../quotas/rules.ts";
import {
  MAX_ROWS,
  MAX_USERS,
  OTHER,
  type Spending,
  type SpendingStore,
  tokensOf,
} from "../../quotas/store.ts";
import { namesOf } from "../row-keys.ts";
import { POSTGRES } from "../sql/dialect.ts";
import type { Executor, SqlDecision, Statement } from "../sql/executor.ts";
import { COUNTING, onTheDay, REST, sqlAccounting } from "../sql/spending.ts";
import type { Database } from "./database.ts";

interface CountedRow {
  readonly name: string;
  readonly n: number;
  readonly known: boolean;
}

interface DayCounter {
  readonly day: string;
}

/** `of` returns the executor that changes a tenant's rows. */
export function postgresSpending(database: Database, of: (tenant: string) => Executor): SpendingStore {
  return { ...sqlAccounting(POSTGRES, of), settle: settling(database, of) };
}

function settling(database: Database, of: (tenant: string) => Executor): SpendingStore["settle"] {
  /** The day on which old rows were last deleted. */
  let cleared = "";

  return async (owner, id, spending) => {
    const { tenant, user } = namesOf(owner);
    const unreserve = { sql: COUNTING.unreserve, values: [id] };
    const executor = of(owner.tenant);
    if (!spending) {
      await database.deadlines.inRun(() =>
        executor.change([], () => ({ writes: [unreserve], result: undefined })),
      );
      return;
    }
    const name = JSON.stringify(owner.user);
    const { agent, model } = spending;
    const { day: today } = await database.deadlines.inRun(() =>
      onTheDay(executor, (day) => {
        const time: Statement<{ now: number }> = { sql: NOW, values: [executor.clock()] };
        const rows: Statement<CountedRow> = { sql: ROWS, values: [[tenant, user], day, agent, model] };
        const users: Statement<CountedRow> = { sql: USERS, values: [tenant, day, name] };
        return executor.change(
          [time, rows, users],
          ([[{ now } = NO_TIME], counted, [known]]): SqlDecision<DayCounter | number> => {
            if (dayOf(now) !== day) return { writes: [], result: now };
            const writes: Statement[] = [unreserve];
            if (cleared !== day) writes.push(...clearing(now));
            const amounts = [tokensOf(spending.usage), spending.cost];
            const numbers = numbersOf(spending);
            for (const each of [tenant, user]) {
              for (const period of [day, monthOf(now)])
                writes.push({ sql: COUNTING.spend, values: [each, period, ...amounts] });
              const found = counted.find((row) => row.name === each);
              const isOwn = hasOwnRow(found?.known ?? false, found?.n ?? 0, MAX_ROWS);
              const row = isOwn ? [agent, model] : [OTHER, OTHER];
              writes.push({ sql: COUNTING.count, values: [each, day, ...row, ...numbers] });
            }
            const isOwn = hasOwnRow(known?.known ?? false, known?.n ?? 0, MAX_USERS);
            writes.push({ sql: COUNTING.countUser, values: [tenant, day, isOwn ? name : REST, ...numbers] });
            return { writes, result: { day } };
          },
        );
      }),
    );
    // Set after the commit, because a transaction may be restarted.
    cleared = today;
  };
}

const NO_TIME = { now: 0 };
const NOW = `SELECT ${POSTGRES.time(1)} AS now`;
const ROWS = `
  SELECT name, count(*) AS n, bool_or(agent = $3 AND model = $4) AS known FROM usage
  WHERE ${POSTGRES.among("name", 1)} AND day = $2 GROUP BY name`;
const USERS = `
  SELECT '' AS name, count(*) AS n, coalesce(bool_or("user" = $3), false) AS known FROM usage_of_users
  WHERE tenant = $1 AND day = $2`;
const FORGET_RATES = "DELETE FROM rates WHERE ends <= $1";

function clearing(now: number): Statement[] {
  const first = firstKeptDay(now);
  return [
    { sql: COUNTING.forgetUsage, values: [first] },
    { sql: COUNTING.forgetUsers, values: [first] },
    { sql: COUNTING.forgetSpent, values: [monthOf(now)] },
    { sql: COUNTING.forgetHeld, values: [now] },
    { sql: FORGET_RATES, values: [now] },
  ];
}

function numbersOf({ usage, cost }: Spending): number[] {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated } = usage;
  return [1, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost, estimated ? 1 : 0];
}
