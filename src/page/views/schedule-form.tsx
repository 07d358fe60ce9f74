// Creates or changes a schedule, and shows its next times before it is stored.

import { useState } from "preact/hooks";
import type { Body, Schedule } from "../../client/client.ts";
import { useRead, visible } from "../components.tsx";
import { type Field, valueIn } from "../form.ts";
import { client } from "../session.ts";
import { scheduleTexts } from "../texts/schedules.ts";
import { t } from "../texts.ts";
import { FieldsForm, type FormTexts } from "./fields.tsx";
import { NextTimes, ownZone } from "./next-times.tsx";

type Spec = Body<"PUT /schedules/{schedule_id}">;
type Mode = "repeat" | "once";

/** Returns the part of a schedule that the user writes. */
export function specOf(schedule: Schedule): Spec {
  const { cron, at, timezone, agent, input, thread, keep_thread, overlap, ...rest } = schedule;
  const { catch_up, until, questions, metadata, paused } = rest;
  const times = { cron, at, timezone, until, paused };
  return { ...times, agent, input, thread, keep_thread, overlap, catch_up, questions, metadata };
}

const asChoices = (...names: readonly string[]) =>
  new Map<string, unknown>(names.map((name) => [name, name]));

function scheduleFields(mode: Mode, agents: readonly string[]): Field[] {
  const words = scheduleTexts();
  const field = (name: keyof typeof words.fields, rest: Partial<Field> = {}): Field => ({
    ...{ name, title: words.names[name], description: words.fields[name], kind: "text", required: false },
    ...rest,
  });
  const more = (name: keyof typeof words.fields, rest: Partial<Field>): Field =>
    field(name, { isMore: true, ...rest });
  const suggestions = new Map(Object.entries(words.suggestions));
  const zones = new Map(Intl.supportedValuesOf("timeZone").map((zone) => [zone, ""]));
  const kept = new Map<string, unknown>([
    [words.yes, true],
    [words.no, false],
  ]);
  return [
    ...(mode === "repeat"
      ? [
          field("cron", { required: true, suggestions }),
          field("timezone", { suggestions: zones, standard: "UTC" }),
        ]
      : [field("at", { kind: "time", required: true })]),
    field("agent", { choices: asChoices(...agents) }),
    field("input", { kind: "long", required: true }),
    more("thread", { standard: "new" }),
    more("keep_thread", { choices: kept, standard: true }),
    more("overlap", { choices: asChoices("skip", "queue", "allow"), standard: "skip" }),
    more("catch_up", { choices: asChoices("latest", "all", "none"), standard: "latest" }),
    more("questions", { choices: asChoices("wait", "deny"), standard: "wait" }),
    ...(mode === "repeat" ? [more("until", { kind: "time" })] : []),
    more("metadata", { kind: "json" }),
  ];
}

interface FormProps {
  readonly agents: readonly string[];
  readonly values: Readonly<Record<string, unknown>>;
  /** Fields that precede the common fields. */
  readonly first?: readonly Field[];
  readonly submit: string;
  readonly onSubmit: (values: Record<string, unknown>) => Promise<void>;
  readonly onCancel: () => void;
}

function ScheduleForm({ agents, values, first = [], submit, onSubmit, onCancel }: FormProps) {
  const [mode, setMode] = useState<Mode>(values.at === undefined ? "repeat" : "once");
  const words = scheduleTexts();
  const fields = [...first, ...scheduleFields(mode, agents)];
  return (
    <>
      <fieldset class="row">
        <legend class="unseen">{words.when}</legend>
        {(["repeat", "once"] as const).map((each) => (
          <label key={each} class="check">
            <input type="radio" checked={mode === each} onChange={() => setMode(each)} />
            {words.modes[each]}
          </label>
        ))}
      </fieldset>
      <FieldsForm
        fields={fields}
        values={values}
        submit={submit}
        onSubmit={onSubmit}
        below={{
          name: mode === "repeat" ? "timezone" : "at",
          draw: (texts) => <Preview fields={fields} texts={texts} />,
        }}
        moreTitle={words.moreSettings}
        more={
          <button type="button" onClick={onCancel}>
            {t().shared.cancel}
          </button>
        }
      />
    </>
  );
}

const TYPING_MS = 300;

/** Requests a preview from the server once the user stops typing. */
function Preview({ fields, texts }: { fields: readonly Field[]; texts: FormTexts }) {
  const given = (name: string) => {
    const field = fields.find((each) => each.name === name);
    return field && valueIn(field, texts[name] ?? "");
  };
  const times = { cron: given("cron"), at: given("at"), timezone: given("timezone"), until: given("until") };
  const isGiven = times.cron !== undefined || times.at !== undefined;
  const { value, problem } = useRead(async (signal) => {
    if (!isGiven) return undefined;
    await new Promise((resolve) => setTimeout(resolve, TYPING_MS));
    signal.throwIfAborted();
    // The server validates every field.
    return client.schedules.preview(times as Body<"POST /schedules/preview">, signal);
  }, Object.values(times));
  const timezone = typeof times.timezone === "string" ? times.timezone : "UTC";
  return (
    <div role="status">
      {problem && isGiven && <p class="empty">{visible(problem)}</p>}
      {!problem && value && (
        <NextTimes times={value.next_runs} timezone={times.at === undefined ? timezone : ownZone()} />
      )}
    </div>
  );
}

interface NewProps {
  readonly agents: readonly string[];
  /** The ids of existing schedules. A new schedule with one of these ids replaces the existing one. */
  readonly ids: readonly string[];
  readonly onMade: () => void;
}

export function NewSchedule({ agents, ids, onMade }: NewProps) {
  const [isOpen, setOpen] = useState(false);
  /** The name of the existing schedule that the user was asked about. Submitting the same name again replaces it. */
  const [asked, setAsked] = useState<string>();
  const words = scheduleTexts();
  if (!isOpen)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        + {words.new}
      </button>
    );
  const create = async ({ id, ...spec }: Record<string, unknown>) => {
    const name = String(id);
    if (ids.includes(name) && asked !== name) {
      setAsked(name);
      throw new Error(words.exists(name));
    }
    // The server validates every field.
    await client.schedules.put(name, spec as Spec);
    setOpen(false);
    onMade();
  };
  const { id: title } = words.names;
  return (
    <section aria-label={words.new} class="editing">
      <h2>{words.new}</h2>
      <ScheduleForm
        agents={agents}
        first={[{ name: "id", title, description: words.fields.id, kind: "text", required: true }]}
        values={{ timezone: ownZone() }}
        submit={words.create}
        onSubmit={create}
        onCancel={() => setOpen(false)}
      />
    </section>
  );
}

interface EditProps {
  readonly schedule: Schedule;
  readonly agents: readonly string[];
  readonly onEnd: (isChanged: boolean) => void;
}

export function EditSchedule({ schedule, agents, onEnd }: EditProps) {
  const words = scheduleTexts();
  const spec = specOf(schedule);
  return (
    <section aria-label={words.editOf(visible(schedule.id))} class="editing">
      <ScheduleForm
        agents={agents}
        values={spec}
        submit={t().shared.save}
        onSubmit={async (values) => {
          // The server validates every field.
          await client.schedules.put(schedule.id, { ...(values as Spec), paused: spec.paused });
          onEnd(true);
        }}
        onCancel={() => onEnd(false)}
      />
    </section>
  );
}
