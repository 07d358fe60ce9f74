// What was used by day, agent and model, and what is left of each limit. An admin sees it of the tenant as well.

import { useState } from "preact/hooks";
import type { UsageReport } from "../../client/client.ts";
import { Empty, Problem, Tabs, Time, useRead } from "../components.tsx";
import { compact, money, number, percent } from "../numbers.ts";
import { client, may } from "../session.ts";
import { DayBars, NameBars, PartBar } from "./bars.tsx";
import { PageView } from "./page-view.tsx";

type Used = UsageReport["totals"];
type Scope = "user" | "tenant";

const DAYS = [7, 30, 100] as const;
const MEASURES = {
  tokens: { name: "Tokens", of: (used: Used) => used.input_tokens + used.output_tokens, format: compact },
  cost: { name: "Cost", of: (used: Used) => used.cost, format: money },
  calls: { name: "Model calls", of: (used: Used) => used.calls, format: number },
} as const;
type Measure = keyof typeof MEASURES;

export function Usage() {
  const [scope, setScope] = useState<Scope>("user");
  const scopes = {
    ...(may("read") ? { user: { title: "Yours", body: () => <Report of="user" /> } } : {}),
    ...(may("admin") ? { tenant: { title: "Of the tenant", body: () => <Report of="tenant" /> } } : {}),
  };
  return (
    <PageView title="Usage">
      {Object.keys(scopes).length > 1 ? (
        <Tabs
          label="Whose usage"
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
  return (
    <div class="usage">
      <Problem>{problem}</Problem>
      {value && (
        <>
          <Limits limits={value.limits} />
          <div class="filters">
            <label>
              Days
              <select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
                {DAYS.map((each) => (
                  <option key={each} value={each}>
                    Last {each} days
                  </option>
                ))}
              </select>
            </label>
            <label>
              Show
              <select value={measure} onChange={(event) => setMeasure(event.currentTarget.value as Measure)}>
                {Object.entries(MEASURES).map(([name, { name: title }]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <Totals totals={value.totals} currency={value.currency} />
          {value.items.length === 0 ? (
            <Empty>
              Tokens, model calls and cost appear here, by day, agent and model, after the first run.
            </Empty>
          ) : (
            <Charts report={value} days={days} measure={measure} />
          )}
        </>
      )}
    </div>
  );
}

const Totals = ({ totals, currency }: { totals: Used; currency: string | undefined }) => (
  <dl class="sums">
    {[
      ["Model calls", number(totals.calls)],
      ["Tokens in", number(totals.input_tokens)],
      ["Cached", totals.input_tokens ? percent(totals.cache_read_tokens / totals.input_tokens) : "–"],
      ["Tokens out", number(totals.output_tokens)],
      [currency ? `Cost in ${currency}` : "Cost", money(totals.cost)],
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
  const { name: measure, of, format } = MEASURES[chosen];
  const by = (nameOf: (item: UsageReport["items"][number]) => string) =>
    sums(items.map((item) => ({ name: nameOf(item), value: of(item) })));
  const byDay = new Map(by(({ day }) => day).map(({ name, value }) => [name, value]));
  const shared = { measure, format };
  return (
    <>
      <DayBars
        {...shared}
        title={`${measure} by day`}
        amounts={lastDays(days).map((name) => ({ name, value: byDay.get(name) ?? 0 }))}
      />
      <div class="usage-tables">
        <NameBars {...shared} title="Agent" amounts={by(({ agent }) => agent)} />
        <NameBars {...shared} title="Model" amounts={by(({ model }) => model)} />
        {users && (
          <NameBars
            {...shared}
            title="User"
            amounts={users.map((used) => ({ name: used.user ?? "All others", value: of(used) }))}
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

/** In UTC, as the server counts; oldest first. */
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
  if (limits.length === 0)
    return <Empty>No limits are set. With quotas in server.yaml, what is left is shown here.</Empty>;
  return (
    <table class="limits">
      <thead>
        <tr>
          <th>Limit</th>
          <th>On</th>
          <th class="number">Used</th>
          <th>Part</th>
          <th class="number">Left</th>
          <th>Resets</th>
        </tr>
      </thead>
      <tbody>
        {limits.map((each) => (
          <tr key={`${each.of} ${each.limit}`}>
            <td>{nameOf(each)}</td>
            <td data-name="On">{each.of === "tenant" ? "the tenant" : "you"}</td>
            <td class="number" data-name="Used">
              {amountOf(each, each.used)} of {amountOf(each, each.most)}
            </td>
            <td>
              <PartBar part={partOf(each)} says={percent(partOf(each))} />
            </td>
            <td class="number" data-name="Left">
              {each.left === 0 ? <strong>none left</strong> : amountOf(each, each.left)}
            </td>
            {each.resets_at ? (
              <td data-name="Resets">
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
