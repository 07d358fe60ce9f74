// Answers a question with a text.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { draftOf, saveDraft } from "../drafts.ts";
import { isSendingEnter } from "../enter.ts";
import { t } from "../texts.ts";

export interface ReplyProps {
  /** The key under which the text survives a reload: `keyOf` of its question. */
  readonly draft: string;
  readonly label: string;
  /** The label of the button. */
  readonly send: string;
  /** True if an empty text is not accepted. */
  readonly isNeeded?: boolean;
  readonly isOff: boolean;
  readonly onSend: (text: string) => Promise<void>;
  readonly onCancel?: () => void;
  /** True if the user has just opened it, so it receives focus. */
  readonly isOpened?: boolean;
  /** Additional buttons, shown next to those of the form. */
  readonly children?: ComponentChildren;
}

export function Reply(props: ReplyProps) {
  const { draft, label, send, isNeeded = false, isOff, onSend, onCancel, isOpened = false, children } = props;
  const [text, setText] = useState(() => draftOf(draft));
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (isOpened) field.current?.focus();
  }, [isOpened]);
  const write = (value: string) => {
    setText(value);
    saveDraft(draft, value);
  };
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
          ref={field}
          rows={2}
          maxLength={100_000}
          value={text}
          onInput={(event) => write(event.currentTarget.value)}
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
