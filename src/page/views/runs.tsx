// The runs of all threads, newest first.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { OpenInterrupt, RunRecord } from "../../client/client.ts";
import { type Outcome, outcomeOf } from "../../client/outcome.ts";
import { Action, Empty, Plain, Problem, Time, useRead } from "../components.tsx";
import { errorText } from "../error-text.ts";
import { useTouched } from "../frame.ts";
import { duration, money, number } from "../numbers.ts";
import { OUTCOME_MARKS, OUTCOMES } from "../outcome-marks.ts";
import { questions } from "../questions.ts";
import { hashOf } from "../routes.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { PageView } from "./page-view.tsx";
import { useRuns } from "./use-runs.ts";
import { useTitles } from "./use-titles.ts";

export function Runs() {
  const [status, setStatus] = useState<Outcome | "">("");
  const words = t().runs;
  const asking = askingRuns(useTouched(questions).items);
  const [agent, setAgent] = useState("");
  const [hours, setHours] = useState("");
  const { value: agents } = useRead((signal) => client.agents.list(signal), []);
  const { runs, hasMore, more, problem } = useRuns({
    status: status ? STATUS_OF[status] : undefined,
    agent: agent || undefined,
    hours: hours ? Number(hours) : undefined,
  });
  const shown = runs?.filter((run) => !status || endOf(run, asking) === status);
  return (
    <PageView title={words.title}>
      <div class="filters">
        <Choice label={words.status} value={status} onChange={(value) => setStatus(value as Outcome | "")}>
          <option value="">{words.anyStatus}</option>
          {OUTCOMES.map((each) => (
            <option key={each} value={each}>
              {t().outcomes[each]}
            </option>
          ))}
        </Choice>
        <Choice label={words.agent} value={agent} onChange={setAgent}>
          <option value="">{words.anyAgent}</option>
          {agents?.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Choice>
        <Choice label={words.started} value={hours} onChange={setHours}>
          {Object.entries(words.hours).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </Choice>
      </div>
      <Problem>{problem}</Problem>
      {shown && shown.length > 0 && <RunTable runs={shown} asking={asking} />}
      {shown?.length === 0 && <Empty>{status || agent || hours ? words.none : words.nothing}</Empty>}
      {hasMore && <Action onClick={more}>{words.more}</Action>}
    </PageView>
  );
}

const Choice = (props: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: ComponentChildren;
}) => (
  <label>
    {props.label}
    <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
      {props.children}
    </select>
  </label>
);

interface AskingRuns {
  readonly asking: ReadonlySet<string>;
}

function RunTable({ runs, asking }: { runs: readonly RunRecord[] } & AskingRuns) {
  const words = t().runs;
  const titles = useTitles(runs);
  return (
    <table class="runs">
      <thead>
        <tr>
          <th>{words.status}</th>
          <th>{words.about}</th>
          <th>{words.agent}</th>
          <th>{words.started}</th>
          <th class="number">{words.took}</th>
          <th class="number spare">{words.tokensIn}</th>
          <th class="number spare">{words.out}</th>
          <th class="number spare">{words.cost}</th>
          <th>{words.open}</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunRow key={run.id} run={run} about={titles.get(run.thread_id) ?? ""} asking={asking} />
        ))}
      </tbody>
    </table>
  );
}

function RunRow({ run, about, asking }: { run: RunRecord; about: string } & AskingRuns) {
  const words = t().runs;
  const { thread_id: thread, id, usage, error } = run;
  return (
    <tr>
      <td>
        <RunOutcome outcome={endOf(run, asking)} />
        {error && (
          <p class="problem">
            <Plain>{errorText(error)}</Plain>
          </p>
        )}
      </td>
      <td class="about">
        <Plain>{about}</Plain>
      </td>
      <td>
        <Plain>{run.agent}</Plain>
      </td>
      <td>
        <Time at={run.created_at} />
      </td>
      <td class="number" data-name={words.took}>
        <Took run={run} />
      </td>
      <td
        class="number spare"
        data-name={words.tokensIn}
        title={words.cached(number(usage.cache_read_tokens))}
      >
        {number(usage.input_tokens)}
      </td>
      <td class="number spare" data-name={words.out}>
        {number(usage.output_tokens)}
      </td>
      <td class="number spare" data-name={words.cost}>
        {usage.cost === undefined ? "–" : money(usage.cost)}
      </td>
      <td class="links">
        <a href={hashOf({ view: "thread", thread })} aria-label={words.conversationOf(id)}>
          {words.conversation}
        </a>
        <a href={hashOf({ view: "thread", thread, run: id, tab: "trace" })} aria-label={words.traceOf(id)}>
          {words.trace}
        </a>
      </td>
    </tr>
  );
}

/** Updates while the run is in progress. */
function Took({ run: { created_at, ended_at } }: { run: RunRecord }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (ended_at) return;
    const timer = setInterval(() => tick((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, [ended_at]);
  const end = ended_at ? Date.parse(ended_at) : Date.now();
  return <>{duration(Math.max(0, end - Date.parse(created_at)))}</>;
}

/** Returns the keys of the runs with an open question. A run id alone is unique only within its thread. */
const askingRuns = (items: readonly OpenInterrupt[]): ReadonlySet<string> =>
  new Set(items.map(({ thread_id, run_id }) => `${thread_id} ${run_id}`));

const endOf = (run: RunRecord, asking: ReadonlySet<string>): Outcome =>
  outcomeOf(run, asking.has(`${run.thread_id} ${run.id}`));

/** The status to filter by on the server. Undefined if the outcome covers several statuses. */
const STATUS_OF: Readonly<Partial<Record<Outcome, RunRecord["status"]>>> = {
  queued: "pending",
  running: "running",
  waits: "interrupted",
  answered: "interrupted",
  failed: "error",
  empty: "success",
  cut: "success",
  done: "success",
};

export function RunOutcome({ outcome }: { outcome: Outcome }) {
  const [mark, tone] = OUTCOME_MARKS[outcome];
  return (
    <span class={`run-status ${tone}`}>
      <span aria-hidden="true">{mark}</span> {t().outcomes[outcome]}
    </span>
  );
}
