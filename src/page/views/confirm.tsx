// A button for an action that cannot be undone. It is replaced by a confirmation.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../components.tsx";
import { t } from "../texts.ts";

export function Confirm(props: {
  onConfirm: () => Promise<unknown>;
  /** The question, which states the effect. */
  question: ComponentChildren;
  /** The label of the confirming button. */
  verb?: string;
  /** The accessible name of the first button, if its label does not name the object. */
  label?: string;
  class?: string;
  children: ComponentChildren;
}) {
  const { verb = t().shared.delete } = props;
  const [isAsked, setAsked] = useState(false);
  if (!isAsked)
    return (
      <button type="button" class={props.class} aria-label={props.label} onClick={() => setAsked(true)}>
        {props.children}
      </button>
    );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    <span role="group" class="confirm">
      {props.question}{" "}
      <Action
        class="danger"
        onClick={async () => {
          await props.onConfirm();
          setAsked(false);
        }}
      >
        {verb}
      </Action>{" "}
      <button type="button" onClick={() => setAsked(false)}>
        {t().confirm.keep}
      </button>
    </span>
  );
}
