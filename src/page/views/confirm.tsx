// A button for what cannot be undone: it asks once more, in its own place.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../components.tsx";
import { t } from "../texts.ts";

export function Confirm(props: {
  onConfirm: () => Promise<unknown>;
  /** What will happen, as a question. */
  question: ComponentChildren;
  /** On the button that does it. */
  verb?: string;
  /** Of the first button, when its text does not say which thing it means. */
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
