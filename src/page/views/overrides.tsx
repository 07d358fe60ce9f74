// The user's own settings for an agent, as forms: the model, the skills, and the options of each hook.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { AgentDetails, AgentOverrides, OverridesPatch } from "../../client/client.ts";
import { Action, Plain, visible } from "../components.tsx";
import { type Field, fieldsOf, isObject, patchFrom } from "../form.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { FieldsForm } from "./fields.tsx";

interface OverridesProps {
  readonly agent: AgentDetails;
  readonly overrides: AgentOverrides;
  readonly onChanged: () => void;
}

export function Overrides({ agent, overrides, onChanged }: OverridesProps) {
  const { hooks = {}, skills, model, ignored } = overrides;
  const isChanged = Object.keys(hooks).length > 0 || skills !== undefined || model !== undefined;
  const save = async (patch: OverridesPatch) => {
    await client.agents.setOverrides(agent.name, patch);
    onChanged();
  };
  // When the saved values change elsewhere, the forms reset to the new values.
  const version = JSON.stringify(overrides);
  const words = t().overrides;
  return (
    <section aria-label={words.title}>
      <header class="row">
        <h2>{words.heading}</h2>
        {isChanged && (
          <Confirm
            verb={words.reset}
            question={words.resetQuestion}
            onConfirm={async () => {
              await client.agents.deleteOverrides(agent.name);
              onChanged();
            }}
          >
            {words.resetAll}
          </Confirm>
        )}
      </header>
      {ignored.map(({ path, message }) => (
        <p class="problem" key={path}>
          <Plain>{words.ignored(path, message)}</Plain>
        </p>
      ))}
      <div class="changes">
        <Change name={words.model} now={agent.model} isOwn={model !== undefined}>
          <Model key={version} agent={agent} model={model} save={save} />
        </Change>
        {agent.backend && (
          <Change name={words.skills} now="" isOwn={skills !== undefined}>
            <Skills key={version} skills={skills} save={save} />
          </Change>
        )}
        {agent.choices.hooks.map((choice) => {
          const own = hooks[choice.name];
          return (
            <Change
              key={choice.name}
              name={choice.name}
              now={choice.active ? words.now.on : words.now.off}
              isOwn={own !== undefined}
            >
              <Hook key={version} choice={choice} own={own} save={save} />
            </Change>
          );
        })}
      </div>
    </section>
  );
}

type Save = (patch: OverridesPatch) => Promise<void>;

/** A setting that can be reset: its name, current value and form. */
function Change(props: {
  name: string;
  /** The value that applies to this user. */
  now: string;
  isOwn: boolean;
  children: ComponentChildren;
}) {
  return (
    <details class="change">
      <summary>
        <Plain>{props.name}</Plain> <span class="quiet">{visible(props.now)}</span>
        {props.isOwn && <span class="tag">{t().overrides.byYou}</span>}
      </summary>
      {props.children}
    </details>
  );
}

const Reset = ({ isOwn, onClick }: { isOwn: boolean; onClick: () => Promise<void> }) =>
  isOwn ? <Action onClick={onClick}>{t().overrides.modes.configured}</Action> : null;

function Model({ agent, model, save }: { agent: AgentDetails; model: string | undefined; save: Save }) {
  const { names, patterns, any } = agent.choices.models;
  const words = t().overrides;
  const further = any ? words.anyWithKey : patterns.join(", ");
  const listed = names.join(", ");
  const isFree = any || patterns.length > 0;
  const field: Field = {
    name: "model",
    required: false,
    ...(isFree
      ? { kind: "text", description: further ? words.oneOfOr(listed, further) : words.oneOf(listed) }
      : { kind: "choice", choices: new Map(names.map((name) => [name, name])) }),
  };
  return (
    <FieldsForm
      fields={[field]}
      values={{ model }}
      standards={{ model: agent.model }}
      submit={t().shared.save}
      onSubmit={({ model: chosen }) => save({ model: typeof chosen === "string" ? chosen : null })}
      more={<Reset isOwn={model !== undefined} onClick={() => save({ model: null })} />}
    />
  );
}

const skillFields = (): Field[] =>
  (["paths", "include", "exclude"] as const).map((name) => ({
    name,
    kind: "list",
    required: false,
    description: t().overrides.fields[name],
  }));

function Skills({ skills, save }: { skills: AgentOverrides["skills"]; save: Save }) {
  const isOwn = skills !== undefined;
  return (
    <FieldsForm
      fields={skillFields()}
      values={skills ?? {}}
      prefix="skills"
      submit={t().shared.save}
      onSubmit={(values) => save({ skills: patchFrom(skills, values) as OverridesPatch["skills"] })}
      more={<Reset isOwn={isOwn} onClick={() => save({ skills: null })} />}
    />
  );
}

type HookChoice = AgentDetails["choices"]["hooks"][number];
type Setting = boolean | Readonly<Record<string, unknown>> | undefined;
type Patch = boolean | Record<string, unknown> | null;

type Mode = "off" | "on" | "configured";

function Hook({ choice, own, save }: { choice: HookChoice; own: Setting; save: Save }) {
  const { name, may, schema, options = {} } = choice;
  const fields = fieldsOf(schema);
  const [mode, setMode] = useState<Mode>(own === undefined ? "configured" : own === false ? "off" : "on");
  const modes = may === "disable" ? (["configured", "off"] as const) : (["configured", "on", "off"] as const);
  const set = (setting: unknown) => save({ hooks: { [name]: setting as Patch } });
  const values = isObject(own) ? own : {};
  const words = t().overrides;
  return (
    <>
      <fieldset class="row">
        <legend class="unseen">{words.hook}</legend>
        {modes.map((each) => (
          <label key={each} class="option">
            <input
              type="radio"
              name={`mode-${name}`}
              checked={mode === each}
              onChange={() => setMode(each)}
            />
            {words.modes[each]}
          </label>
        ))}
      </fieldset>
      <FieldsForm
        key={mode}
        fields={mode === "on" ? fields : []}
        values={values}
        standards={without(options, values)}
        prefix={`hooks.${name}`}
        submit={t().shared.save}
        onSubmit={(given) => {
          if (mode === "configured") return set(null);
          if (mode === "off") return set(false);
          return set(fields.length === 0 ? true : patchFrom(own, given));
        }}
      />
    </>
  );
}

/** Returns the options that apply without the user's own settings. */
const without = (options: Readonly<Record<string, unknown>>, own: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !(name in own)));
