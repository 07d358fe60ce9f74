// Creates or changes a trigger. A secret created by the server is shown only once.

import { useState } from "preact/hooks";
import type { Body, NewTrigger as MadeTrigger, Trigger } from "../../client/client.ts";
import { visible } from "../components.tsx";
import type { Field } from "../form.ts";
import { client } from "../session.ts";
import { triggerTexts } from "../texts/triggers.ts";
import { t } from "../texts.ts";
import { FieldsForm } from "./fields.tsx";
import { ShownOnce } from "./trigger-secret.tsx";

type Spec = Body<"PUT /triggers/{trigger_id}">;
type Scheme = Trigger["verify"]["scheme"];
type TriggerValues = Record<string, unknown>;

/** Returns the part of a trigger that the user writes. If the secret is omitted, the trigger keeps its current one. */
export function specOf({ agent, verify, input, thread, ...rest }: Trigger): Spec {
  const { delivery_id, filter, metadata, paused } = rest;
  // The API's type for a header is `unknown`.
  const sender = verify as Spec["verify"];
  return { agent, verify: sender, input, thread, delivery_id, filter, metadata, paused };
}

function triggerFields(scheme: Scheme, agents: readonly string[]): Field[] {
  const words = triggerTexts();
  const field = (name: keyof typeof words.fields, rest: Partial<Field> = {}): Field => ({
    ...{ name, title: words.names[name], description: words.fields[name], kind: "text", required: false },
    ...rest,
  });
  const more = (name: keyof typeof words.fields, rest: Partial<Field> = {}): Field =>
    field(name, { isMore: true, ...rest });
  const encodings = new Map<string, unknown>([
    ["hex", "hex"],
    ["base64", "base64"],
  ]);
  const signature = [
    field("verify.header", { required: true }),
    field("verify.prefix"),
    field("verify.encoding", { choices: encodings, standard: "hex" }),
  ];
  return [
    ...(scheme === "hmac" ? signature : []),
    ...(scheme === "token" ? [field("verify.header", { standard: "authorization" })] : []),
    field("secret"),
    field("agent", { choices: new Map(agents.map((name) => [name, name])), required: true }),
    field("input", { kind: "long", required: true }),
    field("thread", { standard: "new" }),
    field("filter", { kind: "json" }),
    more("delivery_id"),
    more("metadata", { kind: "json" }),
  ];
}

/** The server validates every field. */
function specFrom(scheme: Scheme, values: TriggerValues): Spec {
  const all = Object.entries(values);
  const verify = all.flatMap(([name, value]) => (name.startsWith("verify.") ? [[name.slice(7), value]] : []));
  const spec = all.filter(([name]) => !name.startsWith("verify."));
  return { ...Object.fromEntries(spec), verify: { scheme, ...Object.fromEntries(verify) } } as Spec;
}

function valuesOf(trigger: Trigger): TriggerValues {
  const verify = Object.entries(trigger.verify).map(([name, value]) => [`verify.${name}`, value]);
  return { ...specOf(trigger), ...Object.fromEntries(verify) };
}

interface FormProps {
  readonly agents: readonly string[];
  readonly scheme: Scheme;
  readonly values: TriggerValues;
  /** Fields that precede the common fields. */
  readonly first?: readonly Field[];
  readonly submit: string;
  readonly onSubmit: (spec: Spec, values: TriggerValues) => Promise<void>;
  readonly onCancel: () => void;
}

function TriggerForm({ agents, first = [], ...props }: FormProps) {
  const [scheme, setScheme] = useState(props.scheme);
  const words = triggerTexts();
  const schemes = Object.entries(words.schemes) as [Scheme, string][];
  return (
    <>
      <label class="pick">
        {words.sender}
        <select value={scheme} onChange={({ currentTarget: { value } }) => setScheme(value as Scheme)}>
          {schemes.map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <FieldsForm
        fields={[...first, ...triggerFields(scheme, agents)]}
        values={props.values}
        submit={props.submit}
        onSubmit={(values) => props.onSubmit(specFrom(scheme, values), values)}
        moreTitle={words.moreSettings}
        more={
          <button type="button" onClick={props.onCancel}>
            {t().shared.cancel}
          </button>
        }
      />
    </>
  );
}

interface NewProps {
  readonly agents: readonly string[];
  /** The ids of existing triggers. A new trigger with one of these ids replaces the existing one. */
  readonly ids: readonly string[];
  readonly onMade: () => void;
}

export function NewTrigger({ agents, ids, onMade }: NewProps) {
  const [isOpen, setOpen] = useState(false);
  /** The name of the existing trigger that the user was asked about. Submitting the same name again replaces it. */
  const [asked, setAsked] = useState<string>();
  const [made, setMade] = useState<MadeTrigger>();
  const words = triggerTexts();
  const create = async (spec: Spec, name: string) => {
    if (ids.includes(name) && asked !== name) {
      setAsked(name);
      throw new Error(words.exists(name));
    }
    setMade(await client.triggers.put(name, spec));
    setOpen(false);
    onMade();
  };
  const { id: title } = words.names;
  return (
    <>
      {!isOpen && (
        <button type="button" onClick={() => setOpen(true)}>
          + {words.new}
        </button>
      )}
      {isOpen && (
        <section aria-label={words.new} class="editing">
          <h2>{words.new}</h2>
          <TriggerForm
            agents={agents}
            scheme="github"
            values={{ agent: agents[0] }}
            first={[{ name: "id", title, description: words.fields.id, kind: "text", required: true }]}
            submit={words.create}
            onSubmit={({ id: _, ...spec }: Spec & { id?: unknown }, { id }) => create(spec, String(id))}
            onCancel={() => setOpen(false)}
          />
        </section>
      )}
      {made && <ShownOnce trigger={made} onClose={() => setMade(undefined)} />}
    </>
  );
}

interface EditProps {
  readonly trigger: Trigger;
  readonly agents: readonly string[];
  readonly onEnd: (isChanged: boolean) => void;
}

export function EditTrigger({ trigger, agents, onEnd }: EditProps) {
  const words = triggerTexts();
  return (
    <section aria-label={`${words.edit} ${visible(trigger.id)}`} class="editing">
      <TriggerForm
        agents={agents}
        scheme={trigger.verify.scheme}
        values={valuesOf(trigger)}
        submit={t().shared.save}
        onSubmit={async (spec) => {
          await client.triggers.put(trigger.id, { ...spec, paused: trigger.paused });
          onEnd(true);
        }}
        onCancel={() => onEnd(false)}
      />
    </section>
  );
}
