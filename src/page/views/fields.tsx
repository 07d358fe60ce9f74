// A form with fields. A server error about a value appears at its field, and every other error appears below the form.

import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Plain, Problem, visible } from "../components.tsx";
import { type Field, issueAt, issuesOf, textOf, valueIn } from "../form.ts";
import { messageOf } from "../session.ts";
import { t } from "../texts.ts";

/** The texts that the user has typed, by field name. */
export type FormTexts = Readonly<Record<string, string>>;

export interface FieldsFormProps {
  readonly fields: readonly Field[];
  /** The values by field name. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The defaults by field name, which apply while a field is empty. */
  readonly standards?: Readonly<Record<string, unknown>>;
  /** The part of the server's paths that precedes a field's name. */
  readonly prefix?: string;
  readonly submit: string;
  /** Receives the value of each field that is not empty. If it throws, the error is shown. */
  readonly onSubmit: (values: Record<string, unknown>) => Promise<unknown>;
  /** Drawn below the field with this name. */
  readonly below?: { readonly name: string; readonly draw: (texts: FormTexts) => ComponentChildren };
  /** The title of the collapsed section. */
  readonly moreTitle?: string;
  /** Drawn next to the button. */
  readonly more?: ComponentChildren;
}

export function FieldsForm(props: FieldsFormProps) {
  const { fields, prefix = "" } = props;
  const [texts, setTexts] = useState<FormTexts>(() =>
    Object.fromEntries(fields.map((field) => [field.name, textOf(field, props.values[field.name])])),
  );
  const [issues, setIssues] = useState<ReadonlyMap<string, string>>(new Map());
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // The field may be outside the visible area.
  useEffect(() => {
    if (issues.size > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [issues]);

  const submit = async (event: Event) => {
    event.preventDefault();
    setProblem("");
    const { values, faults } = valuesOf(fields, texts);
    setIssues(faults);
    if (faults.size > 0) return;
    setBusy(true);
    try {
      await props.onSubmit(values);
    } catch (error) {
      const found = issuesOf(error, prefix);
      setIssues(found);
      const isAtField = fields.some(({ name }) => issueAt(found, name) !== "");
      if (!isAtField) setProblem(messageOf(error));
    }
    setBusy(false);
  };

  const more = fields.filter(({ isMore }) => isMore);
  const drawn = {
    ...{ texts, issues, standards: props.standards, below: props.below },
    onText: (name: string, text: string) => setTexts({ ...texts, [name]: text }),
  };

  return (
    <form ref={form} class="fields" onSubmit={submit}>
      <Controls {...drawn} fields={fields.filter(({ isMore }) => !isMore)} />
      {more.length > 0 && (
        <details open={more.some(({ name }) => issueAt(issues, name) !== "") || undefined}>
          <summary>{props.moreTitle}</summary>
          <div class="fields">
            <Controls {...drawn} fields={more} />
          </div>
        </details>
      )}
      <p class="row">
        <button type="submit" class="primary" disabled={isBusy}>
          {props.submit}
        </button>
        {props.more}
      </p>
      <Problem>{problem && visible(problem)}</Problem>
    </form>
  );
}

interface ControlsProps extends Pick<FieldsFormProps, "fields"> {
  readonly standards: FieldsFormProps["standards"];
  readonly below: FieldsFormProps["below"];
  readonly texts: FormTexts;
  readonly issues: ReadonlyMap<string, string>;
  readonly onText: (name: string, text: string) => void;
}

const Controls = ({ fields, standards, below, texts, issues, onText }: ControlsProps) => (
  <>
    {fields.map((field) => (
      <Fragment key={field.name}>
        <Control
          field={field}
          text={texts[field.name] ?? ""}
          standard={standards?.[field.name] ?? field.standard}
          issue={issueAt(issues, field.name)}
          onText={(text) => onText(field.name, text)}
        />
        {below?.name === field.name && below.draw(texts)}
      </Fragment>
    ))}
  </>
);

function valuesOf(fields: readonly Field[], texts: FormTexts) {
  const values: Record<string, unknown> = {};
  const faults = new Map<string, string>();
  for (const field of fields) {
    try {
      const value = valueIn(field, texts[field.name] ?? "");
      if (value !== undefined) values[field.name] = value;
      else if (field.required) faults.set(field.name, t().form.missing);
    } catch (error) {
      faults.set(field.name, field.kind === "json" ? t().form.noJson(messageOf(error)) : messageOf(error));
    }
  }
  return { values, faults };
}

interface ControlProps {
  readonly field: Field;
  readonly text: string;
  readonly standard: unknown;
  readonly issue: string;
  readonly onText: (text: string) => void;
}

function Control({ field, text, standard, issue, onText }: ControlProps) {
  const id = useId();
  const { name, title, description, range } = field;
  return (
    <div class="field">
      <label for={id}>
        <span>
          <Plain>{title ?? name}</Plain>
          {title !== undefined && <code class="quiet"> {visible(name)}</code>}
          {field.required && <span class="quiet"> {t().form.required}</span>}
        </span>
      </label>
      <Input
        field={field}
        standard={visible(textOf(field, standard))}
        common={{
          id,
          value: text,
          "aria-invalid": issue !== "",
          "aria-required": field.required,
          "aria-describedby": `${id}-about ${id}-issue`,
        }}
        onText={onText}
      />
      <div class="about" id={`${id}-about`}>
        {description && <Plain>{description}</Plain>}
        {range && ` (${range})`}
      </div>
      <div id={`${id}-issue`}>
        <Problem>{issue && visible(issue)}</Problem>
      </div>
    </div>
  );
}

interface InputProps {
  readonly field: Field;
  readonly standard: string;
  readonly common: {
    readonly id: string;
    readonly value: string;
    readonly "aria-invalid": boolean;
    readonly "aria-required": boolean;
    readonly "aria-describedby": string;
  };
  readonly onText: (text: string) => void;
}

function Input({ field, standard, common, onText }: InputProps) {
  const { kind, choices, suggestions } = field;
  if (choices)
    return (
      <select {...common} onChange={(event) => onText(event.currentTarget.value)}>
        <option value="">{standard === "" ? "–" : t().form.standard(standard)}</option>
        {[...choices.keys()].map((choice) => (
          <option key={choice} value={choice}>
            {visible(choice)}
          </option>
        ))}
      </select>
    );
  const typed = { ...common, placeholder: standard, spellcheck: kind === "long", autocomplete: "off" };
  if (kind === "time")
    return (
      <input
        {...common}
        type="datetime-local"
        step="any"
        onInput={(event) => onText(event.currentTarget.value)}
      />
    );
  if (kind === "secret")
    return (
      <input
        {...typed}
        type="password"
        // "off" does not prevent a browser from storing it.
        autocomplete="new-password"
        onInput={(event) => onText(event.currentTarget.value)}
      />
    );
  if (kind === "text" || kind === "number")
    return (
      <>
        <input
          {...typed}
          list={suggestions && `${common.id}-list`}
          inputMode={kind === "number" ? "decimal" : "text"}
          onInput={(event) => onText(event.currentTarget.value)}
        />
        {suggestions && <Suggestions id={`${common.id}-list`} suggestions={suggestions} />}
      </>
    );
  return (
    <textarea
      {...typed}
      class={kind === "json" ? "code" : undefined}
      rows={kind === "json" ? 6 : 3}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}

function Suggestions({ id, suggestions }: { id: string; suggestions: ReadonlyMap<string, string> }) {
  return (
    <datalist id={id}>
      {[...suggestions].map(([value, meaning]) => (
        <option key={value} value={value}>
          {meaning}
        </option>
      ))}
    </datalist>
  );
}
