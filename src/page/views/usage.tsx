// The usage by day, agent and model, and the remaining quotas. An admin can also see the tenant's usage.

import { useState } from "preact/hooks";
import type { UsageReport } from "../../client/client.ts";
import { Empty, Problem, Time, useRead } from "../components.tsx";
import { csvOf } from "../csv.ts";
import { compact, costOf, day, money, number, percent } from "../numbers.ts";
import { client, may } from "../session.ts";
import { Tabs } from "../tabs.tsx";
import { t } from "../texts.ts";
import { DayBars, NameBars, PartBar } from "./bars.tsx";
import { download } from "./download.ts";
import { PageView } from "./page-view.tsx";

type ReportTotals = UsageReport["totals"];
type Scope = "user" | "tenant";

const DAYS = [7, 30, 100] as const;
const MEASURES = {
  tokens: { of: (used: ReportTotals) => used.input_tokens + used.output_tokens, format: compact },
  cost: { of: (used: ReportTotals) => used.cost, format: money },
  calls: { of: (used: ReportTotals) => used.calls, format: number },
} as const;
type Measure = keyof typeof MEASURES;

export function Usage() {
  const [scope, setScope] = useState<Scope>("user");
  const words = t().usage;
  const scopes = {
    ...(may("read") ? { user: { title: words.yours, body: () => <Report of="user" /> } } : {}),
    ...(may("admin") ? { tenant: { title: words.ofTenant, body: () => <Report of="tenant" /> } } : {}),
  };
  return (
    <PageView title={words.title}>
      {Object.keys(scopes).length > 1 ? (
        <Tabs
          label={words.whose}
          current={scope}
          onChange={(name) => setScope(name as Scope)}
          tabs={scopes}
        />
      ) : (
        <Report of={may("admin") ? "tenant" : "user"} />
      )}
    </PageView>
  );
}

function Report({ of }: { of: Scope }) {
  const [days, setDays] = useState<number>(30);
  const [measure, setMeasure] = useState<Measure>("tokens");
  const { value, problem } = useRead((signal) => client.usage({ days, of }, signal), [days, of]);
  const words = t().usage;
  return (
    <div class="usage">
      <Problem>{problem}</Problem>
      {value && (
        <>
          <Limits limits={value.limits} />
          <div class="filters">
            <label>
              {words.days}
              <select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
                {DAYS.map((each) => (
                  <option key={each} value={each}>
                    {words.lastDays(each)}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {words.show}
              <select value={measure} onChange={(event) => setMeasure(event.currentTarget.value as Measure)}>
                {Object.entries(words.measures).map(([name, title]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
            <button type="button" onClick={() => saveCsv(value, days)} disabled={value.items.length === 0}>
              {words.csv}
            </button>
          </div>
          <Totals totals={value.totals} />
          {value.items.length === 0 ? (
            <Empty>{words.empty}</Empty>
          ) : (
            <Charts report={value} days={days} measure={measure} />
          )}
        </>
      )}
    </div>
  );
}

const COLUMNS = [
  "day",
  "agent",
  "model",
  "calls",
  "input_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
  "output_tokens",
] as const;

/** Writes a row for each day, agent and model. Columns are named as in the API, and costs are in units of the currency. */
function saveCsv({ items, currency = "" }: UsageReport, days: number): void {
  const rows = items.map((item) => [...COLUMNS.map((name) => item[name]), item.cost / 1_000_000, currency]);
  const text = csvOf([[...COLUMNS, "cost", "currency"], ...rows]);
  download(new Blob([text], { type: "text/csv" }), `usage-${days}-days.csv`);
}

const Totals = ({ totals }: { totals: ReportTotals }) => (
  <dl class="sums">
    {[
      [t().usage.calls, number(totals.calls)],
      [t().usage.tokensIn, number(totals.input_tokens)],
      [t().usage.cached, totals.input_tokens ? percent(totals.cache_read_tokens / totals.input_tokens) : "–"],
      [t().usage.tokensOut, number(totals.output_tokens)],
      [t().usage.cost, costOf(totals)],
    ].map(([name, text]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{text}</dd>
      </div>
    ))}
  </dl>
);

interface ChartsProps {
  readonly report: UsageReport;
  readonly days: number;
  readonly measure: Measure;
}

function Charts({ report: { items, users }, days, measure: chosen }: ChartsProps) {
  const { of, format } = MEASURES[chosen];
  const words = t().usage;
  const measure = words.measures[chosen];
  const by = (nameOf: (item: UsageReport["items"][number]) => string) =>
    sums(items.map((item) => ({ name: nameOf(item), value: of(item) })));
  const byDay = new Map(by(({ day }) => day).map(({ name, value }) => [name, value]));
  const shared = { measure, format };
  if (chosen === "cost" && items.every(({ cost }) => cost === 0)) return <Empty>{words.noPrices}</Empty>;
  return (
    <>
      <DayBars
        {...shared}
        title={words.byDay(measure)}
        amounts={lastDays(days).map((date) => ({ name: day(date), value: byDay.get(date) ?? 0 }))}
      />
      <div class="usage-tables">
        <NameBars {...shared} title={words.agent} amounts={by(({ agent }) => agent)} />
        <NameBars {...shared} title={words.model} amounts={by(({ model }) => model)} />
        {users && (
          <NameBars
            {...shared}
            title={words.user}
            amounts={users.map((used) => ({ name: used.user ?? words.others, value: of(used) }))}
          />
        )}
      </div>
    </>
  );
}

function sums(amounts: readonly { name: string; value: number }[]) {
  const all = new Map<string, number>();
  for (const { name, value } of amounts) all.set(name, (all.get(name) ?? 0) + value);
  return [...all].map(([name, value]) => ({ name, value }));
}

const DAY_MS = 86_400_000;

/** Returns the most recent days, oldest first. The days are in UTC, as on the server. */
function lastDays(days: number): string[] {
  const today = Date.now();
  return Array.from({ length: days }, (_, at) =>
    new Date(today - (days - 1 - at) * DAY_MS).toISOString().slice(0, 10),
  );
}

type Limit = UsageReport["limits"][number];

const isMoney = ({ limit }: Limit) => limit === "cost_per_day" || limit === "cost_per_month";
const amountOf = (limit: Limit, value: number) => (isMoney(limit) ? money(value) : number(value));

function Limits({ limits }: { limits: readonly Limit[] }) {
  const words = t().usage;
  if (limits.length === 0) return <Empty>{words.noLimits}</Empty>;
  return (
    <table class="limits">
      <thead>
        <tr>
          <th>{words.limit}</th>
          <th>{words.on}</th>
          <th class="number">{words.used}</th>
          <th>{words.part}</th>
          <th class="number">{words.left}</th>
          <th>{words.resets}</th>
        </tr>
      </thead>
      <tbody>
        {limits.map((each) => (
          <tr key={`${each.of} ${each.limit}`}>
            <td>{nameOf(each)}</td>
            <td data-name={words.on}>{each.of === "tenant" ? words.tenant : words.you}</td>
            <td class="number" data-name={words.used}>
              {words.usedOf(amountOf(each, each.used), amountOf(each, each.most))}
            </td>
            <td>
              <PartBar part={partOf(each)} says={percent(partOf(each))} />
            </td>
            <td class="number" data-name={words.left}>
              {each.left === 0 ? <strong>{words.noneLeft}</strong> : amountOf(each, each.left)}
            </td>
            {each.resets_at ? (
              <td data-name={words.resets}>
                <Time at={each.resets_at} />
              </td>
            ) : (
              <td />
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const partOf = ({ used, most }: Limit) => (most > 0 ? used / most : 1);

const nameOf = ({ limit }: Limit) => {
  const words = limit.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};
