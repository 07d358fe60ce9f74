// The form for repeating a step: call the model again, or run its calls with edited arguments.

import { useId } from "preact/hooks";
import type { ToolCall } from "../../client/client.ts";
import { readObject } from "../arguments.ts";
import { Plain, Problem, visible } from "../components.tsx";
import { t } from "../texts.ts";

/** The edited arguments of each call. If undefined, the model is called again. */
export type WrittenArguments = readonly string[] | undefined;

interface CallsFormProps {
  readonly calls: readonly ToolCall[];
  /** The arguments of the calls as written by the model. */
  readonly asMade: readonly string[];
  readonly written: WrittenArguments;
  readonly onWrite: (written: WrittenArguments) => void;
}

export function CallsForm({ calls, asMade, written, onWrite }: CallsFormProps) {
  const words = t().again;
  const name = useId();
  return (
    <>
      <fieldset>
        <legend>{words.how}</legend>
        <label class="check">
          <input type="radio" name={name} checked={!written} onChange={() => onWrite(undefined)} />
          {words.askModel}
        </label>
        <label class="check">
          <input type="radio" name={name} checked={!!written} onChange={() => onWrite(written ?? asMade)} />
          {words.runCalls}
        </label>
      </fieldset>
      {written?.map((text, at) => (
        <Arguments
          // biome-ignore lint/suspicious/noArrayIndexKey: the order of the calls does not change.
          key={at}
          tool={calls[at]?.name ?? ""}
          text={text}
          onText={(changed) => onWrite(written.with(at, changed))}
        />
      ))}
      {written && <p class="hint">{words.callsHint}</p>}
    </>
  );
}

const MAX_ROWS = 14;

interface ArgumentsProps {
  readonly tool: string;
  readonly text: string;
  readonly onText: (text: string) => void;
}

function Arguments({ tool, text, onText }: ArgumentsProps) {
  const id = useId();
  const read = readObject(text);
  return (
    <div class="arguments">
      <label for={id}>
        <Plain>{t().again.argumentsOf(visible(tool))}</Plain> <span class="kind">JSON</span>
      </label>
      <textarea
        id={id}
        class="code"
        spellcheck={false}
        rows={Math.min(text.split("\n").length + 1, MAX_ROWS)}
        value={text}
        aria-invalid={"fault" in read}
        aria-describedby={`${id}-fault`}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      <div id={`${id}-fault`}>
        <Problem>{"fault" in read && visible(read.fault)}</Problem>
      </div>
    </div>
  );
}

/** Throws an error for invalid arguments. */
export const callsIn = (calls: readonly ToolCall[], written: readonly string[]) =>
  calls.map(({ name }, at) => {
    const read = readObject(written[at] ?? "");
    if ("args" in read) return { name, args: read.args };
    throw new Error(t().again.callFault(visible(name), read.fault));
  });
