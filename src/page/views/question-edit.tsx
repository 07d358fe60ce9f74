// Edits the arguments of a call before it runs.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { argumentsOf, fieldsOf } from "../arguments.ts";
import { Plain, Problem } from "../components.tsx";
import { t } from "../texts.ts";

export interface EditProps {
  readonly args: Readonly<Record<string, unknown>>;
  readonly isOff: boolean;
  readonly onSend: (args: Record<string, unknown>) => Promise<void>;
  readonly onCancel: () => void;
}

const MAX_ROWS = 14;

export function Edit({ args, isOff, onSend, onCancel }: EditProps) {
  const [fields, setFields] = useState(() => fieldsOf(args));
  const read = argumentsOf(fields);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("textarea")?.focus(), []);
  const change = (name: string, text: string) =>
    setFields(fields.map((field) => (field.name === name ? { ...field, text } : field)));
  return (
    <form
      ref={form}
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        if ("args" in read) void onSend(read.args);
      }}
    >
      {fields.map(({ name, text, isJson }) => (
        <label key={name}>
          <span>
            <Plain>{name}</Plain> {isJson && <span class="kind">JSON</span>}
          </span>
          <textarea
            class="code"
            spellcheck={false}
            rows={Math.min(text.split("\n").length + 1, MAX_ROWS)}
            value={text}
            onInput={(event) => change(name, event.currentTarget.value)}
          />
          {"faults" in read && <Problem>{read.faults.get(name)}</Problem>}
        </label>
      ))}
      <div class="row">
        <button type="submit" class="primary" disabled={isOff || "faults" in read}>
          {t().question.runEdited}
        </button>
        <button type="button" class="quiet" onClick={onCancel}>
          {t().question.back}
        </button>
      </div>
    </form>
  );
}
