// The runs of all threads, newest first.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RunRecord } from "../../client/client.ts";
import { Action, Empty, Plain, Problem, Time, useRead } from "../components.tsx";
import { duration, money, number } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { client } from "../session.ts";
import { PageView } from "./page-view.tsx";
import { useRuns } from "./use-runs.ts";

const HOURS = { "": "Any time", "1": "Last hour", "24": "Last day", "168": "Last week" } as const;

export function Runs() {
  const [status, setStatus] = useState<Status | "">("");
  const [agent, setAgent] = useState("");
  const [hours, setHours] = useState("");
  const { value: agents } = useRead((signal) => client.agents.list(signal), []);
  const { runs, hasMore, more, problem } = useRuns({
    status: status || undefined,
    agent: agent || undefined,
    hours: hours ? Number(hours) : undefined,
  });
  return (
    <PageView title="Runs">
      <div class="filters">
        <Choice label="Status" value={status} onChange={(value) => setStatus(value as Status | "")}>
          <option value="">Any status</option>
          {STATUSES.map((each) => (
            <option key={each} value={each}>
              {wordOf(each)}
            </option>
          ))}
        </Choice>
        <Choice label="Agent" value={agent} onChange={setAgent}>
          <option value="">Any agent</option>
          {agents?.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </Choice>
        <Choice label="Started" value={hours} onChange={setHours}>
          {Object.entries(HOURS).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </Choice>
      </div>
      <Problem>{problem}</Problem>
      {runs && runs.length > 0 && <RunTable runs={runs} />}
      {runs?.length === 0 && (
        <Empty>
          {status || agent || hours
            ? "No run is like this. Choose less above to see more."
            : "Each message that is answered is a run and appears here, with those of subagents."}
        </Empty>
      )}
      {hasMore && <Action onClick={more}>Show more</Action>}
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

const RunTable = ({ runs }: { runs: readonly RunRecord[] }) => (
  <table class="runs">
    <thead>
      <tr>
        <th>Status</th>
        <th>Agent</th>
        <th>Started</th>
        <th class="number">Took</th>
        <th class="number">Tokens in</th>
        <th class="number">Out</th>
        <th class="number">Cost</th>
        <th>Open</th>
      </tr>
    </thead>
    <tbody>
      {runs.map((run) => (
        <RunRow key={run.id} run={run} />
      ))}
    </tbody>
  </table>
);

function RunRow({ run }: { run: RunRecord }) {
  const { thread_id: thread, id, usage, error } = run;
  return (
    <tr>
      <td>
        <RunStatus status={run.status} />
        {error && (
          <p class="problem">
            <Plain>{error.message}</Plain>
          </p>
        )}
      </td>
      <td>
        <Plain>{run.agent}</Plain>
      </td>
      <td>
        <Time at={run.created_at} />
      </td>
      <td class="number" data-name="Took">
        <Took run={run} />
      </td>
      <td
        class="number"
        data-name="Tokens in"
        title={`${number(usage.cache_read_tokens)} of them from the cache`}
      >
        {number(usage.input_tokens)}
      </td>
      <td class="number" data-name="Out">
        {number(usage.output_tokens)}
      </td>
      <td class="number" data-name="Cost">
        {usage.cost === undefined ? "–" : money(usage.cost)}
      </td>
      <td class="links">
        <a href={hashOf({ view: "thread", thread })} aria-label={`Conversation of run ${id}`}>
          Conversation
        </a>
        <a href={hashOf({ view: "thread", thread, run: id, tab: "trace" })} aria-label={`Trace of run ${id}`}>
          Trace
        </a>
      </td>
    </tr>
  );
}

/** Moves while the run is in progress. */
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

type Status = RunRecord["status"];

/** A mark and a word, so that colour is never all there is. */
const SHOWN: Readonly<Record<Status, { mark: string; word: string; tone: string }>> = {
  pending: { mark: "○", word: "Waits for a slot", tone: "" },
  running: { mark: "●", word: "Running", tone: "now" },
  success: { mark: "✓", word: "Done", tone: "good" },
  interrupted: { mark: "?", word: "Waits for an answer", tone: "warn" },
  cancelled: { mark: "⊘", word: "Cancelled", tone: "" },
  error: { mark: "✗", word: "Failed", tone: "bad" },
};

const STATUSES = Object.keys(SHOWN) as Status[];
const wordOf = (status: Status): string => SHOWN[status].word;

function RunStatus({ status }: { status: Status }) {
  const { mark, word, tone } = SHOWN[status];
  return (
    <span class={`run-status ${tone}`}>
      <span aria-hidden="true">{mark}</span> {word}
    </span>
  );
}
