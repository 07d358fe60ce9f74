// The user's schedules: the times of the next runs, the result of the last run, and the available actions.

import { useEffect, useState } from "preact/hooks";
import type { Schedule } from "../../client/client.ts";
import { keepRead } from "../changes.ts";
import { Action, Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { client, may } from "../session.ts";
import { scheduleTexts } from "../texts/schedules.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { NextTimes, shortTime } from "./next-times.tsx";
import { EditSchedule, NewSchedule, specOf } from "./schedule-form.tsx";

/** The maximum number of schedules to show. By default, a user cannot have more schedules than that. */
const MOST = 100;

export function Schedules() {
  const changes = useRunChanges();
  const { value, problem, reload } = useRead(
    async (signal) => {
      if (changes === 0) return undefined;
      const [agents, page] = await Promise.all([
        client.agents.list(signal),
        client.schedules.list({ limit: MOST }, signal),
      ]);
      return { agents: agents.map(({ name }) => name), ...page };
    },
    [changes],
  );
  const words = scheduleTexts();
  return (
    <div class="sections">
      <section aria-label={words.title}>
        <p class="note">{words.about}</p>
        <Problem>{problem}</Problem>
        {value?.items.length === 0 && <Empty>{words.empty}</Empty>}
        <div class="changes">
          {value?.items.map((schedule) => (
            <OneSchedule key={schedule.id} schedule={schedule} agents={value.agents} onChanged={reload} />
          ))}
        </div>
        {value?.next_cursor && <Empty>{words.more(number(value.items.length))}</Empty>}
        {value && may("run") && (
          <NewSchedule agents={value.agents} ids={value.items.map(({ id }) => id)} onMade={reload} />
        )}
      </section>
    </div>
  );
}

/**
 * Returns a count that increases when the schedules should be read: at first, and whenever a run of the user starts or
 * ends.
 */
function useRunChanges(): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const isConcerned = ({ event }: { event: string }) => event === "run_started" || event === "run_ended";
    return keepRead(isConcerned, async () => setCount((before) => before + 1)).end;
  }, []);
  return count;
}

interface OneProps {
  readonly schedule: Schedule;
  readonly agents: readonly string[];
  readonly onChanged: () => void;
}

function OneSchedule({ schedule, agents, onChanged }: OneProps) {
  const { id, status, next_runs, from_file } = schedule;
  const [isEditing, setEditing] = useState(false);
  const words = scheduleTexts();
  return (
    <details class="change">
      <summary>
        <Plain>{id}</Plain> <span class="quiet">{words.states[status]}</span>
        {status === "active" && next_runs[0] && <span class="quiet"> · {shortTime(next_runs[0])}</span>}
      </summary>
      <ScheduleFacts schedule={schedule} />
      {status !== "paused" && <NextTimes times={next_runs} timezone={schedule.timezone} />}
      {from_file && <p class="note">{words.fromFile}</p>}
      {may("run") && (
        <ScheduleActions schedule={schedule} onEdit={() => setEditing(true)} onChanged={onChanged} />
      )}
      {isEditing && (
        <EditSchedule
          schedule={schedule}
          agents={agents}
          onEnd={(isChanged) => {
            setEditing(false);
            if (isChanged) onChanged();
          }}
        />
      )}
    </details>
  );
}

function ScheduleFacts({ schedule }: { schedule: Schedule }) {
  const { cron, at, timezone, agent, input, pause, pending_slot, last_slot, last_run } = schedule;
  const words = scheduleTexts();
  return (
    <dl class="facts">
      {pause && (
        <>
          <dt>{words.why}</dt>
          <dd>
            {visible(pause.message)} <Time at={pause.since} />
          </dd>
        </>
      )}
      <dt>{words.when}</dt>
      <dd>{cron === undefined ? shortTime(at ?? "") : <Plain>{`${cron} · ${timezone}`}</Plain>}</dd>
      <dt>{words.agent}</dt>
      <dd>{agent === undefined ? words.defaultAgent : <Plain>{agent}</Plain>}</dd>
      <dt>{words.message}</dt>
      <dd class="as-written">
        <Plain>{input}</Plain>
      </dd>
      {pending_slot && (
        <>
          <dt>{words.waits}</dt>
          <dd>
            <Time at={pending_slot.scheduled_for} /> {visible(pending_slot.message)}
          </dd>
        </>
      )}
      {last_slot && (
        <>
          <dt>{words.lastSlot}</dt>
          <dd>
            <Time at={last_slot.scheduled_for} /> {words.outcomes[last_slot.outcome]}
            {last_slot.message && `: ${visible(last_slot.message)}`}
          </dd>
        </>
      )}
      {last_run && (
        <>
          <dt>{words.lastRun}</dt>
          <dd>
            <Time at={last_run.scheduled_for} />{" "}
            <a href={hashOf({ view: "thread", thread: last_run.thread_id })}>{words.openThread}</a>
          </dd>
        </>
      )}
    </dl>
  );
}

interface ActionsProps {
  readonly schedule: Schedule;
  readonly onEdit: () => void;
  readonly onChanged: () => void;
}

function ScheduleActions({ schedule, onEdit, onChanged }: ActionsProps) {
  const { id, status, from_file } = schedule;
  /** The thread of the run started by "Run now". */
  const [thread, setThread] = useState<string>();
  const words = scheduleTexts();
  const pause = async (paused: boolean) => {
    await client.schedules.put(id, { ...specOf(schedule), paused });
    onChanged();
  };
  return (
    <div class="row">
      <Action onClick={async () => setThread((await client.schedules.run(id)).thread_id)}>
        {words.runNow}
      </Action>
      {thread !== undefined && (
        <span role="status">
          {words.runStarted} <a href={hashOf({ view: "thread", thread })}>{words.openThread}</a>
        </span>
      )}
      {!from_file && status === "active" && <Action onClick={() => pause(true)}>{words.pause}</Action>}
      {!from_file && status === "paused" && <Action onClick={() => pause(false)}>{words.resume}</Action>}
      {!from_file && (
        <button type="button" aria-label={words.editOf(visible(id))} onClick={onEdit}>
          {words.edit}
        </button>
      )}
      {!from_file && (
        <Confirm
          class="danger"
          question={words.deleteQuestion}
          onConfirm={async () => {
            await client.schedules.delete(id);
            onChanged();
          }}
        >
          {t().shared.delete}
        </Confirm>
      )}
    </div>
  );
}
