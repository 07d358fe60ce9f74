// A text as the answer to a question.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isSendingEnter } from "../enter.ts";
import { t } from "../texts.ts";

export interface ReplyProps {
  readonly label: string;
  /** The words of the button. */
  readonly send: string;
  /** Whether an empty text is no answer. */
  readonly isNeeded?: boolean;
  readonly isOff: boolean;
  readonly onSend: (text: string) => Promise<void>;
  readonly onCancel?: () => void;
  /** Other buttons beside its own. */
  readonly children?: ComponentChildren;
}

export function Reply({ label, send, isNeeded = false, isOff, onSend, onCancel, children }: ReplyProps) {
  const [text, setText] = useState("");
  const isEmpty = text.trim() === "";
  const submit = () => {
    if (!isOff && !(isNeeded && isEmpty)) void onSend(text.trim());
  };
  return (
    <form
      class="reply"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label>
        {label}
        <textarea
          rows={2}
          maxLength={100_000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (!isSendingEnter(event)) return;
            event.preventDefault();
            submit();
          }}
        />
      </label>
      <div class="row">
        <button type="submit" disabled={isOff || (isNeeded && isEmpty)}>
          {send}
        </button>
        {onCancel && (
          <button type="button" class="quiet" onClick={onCancel}>
            {t().question.back}
          </button>
        )}
        {children}
      </div>
    </form>
  );
}
