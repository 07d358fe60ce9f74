// Messages that the server has accepted but the agent has not read. The user can withdraw, change or immediately send
// each of them.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Action, visible } from "../components.tsx";
import { isSendingEnter } from "../enter.ts";
import { useTouched } from "../frame.ts";
import type { LiveThread, QueuedMessage } from "../live.ts";
import { changeQueued, sendNow, takeBack } from "../run-commands.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";

interface WaitingProps {
  readonly thread: string;
  readonly live: LiveThread;
}

export function WaitingMessages({ thread, live }: WaitingProps) {
  const { waiting } = useTouched(live);
  const [changing, setChanging] = useState<QueuedMessage>();
  // The text stays visible if the agent has started to read it in the meantime.
  const isGone = changing && !waiting.some(({ id }) => id === changing.id);
  const all = isGone ? [...waiting, changing] : waiting;
  if (all.length === 0) return null;
  return (
    <ul class="waiting">
      {all.map((each) => (
        <li key={each.id}>
          {each.id === changing?.id ? (
            <Change {...{ thread, live }} message={changing} onClose={() => setChanging(undefined)} />
          ) : (
            <Message {...{ thread, live }} message={each} onChange={() => setChanging(each)} />
          )}
        </li>
      ))}
    </ul>
  );
}

interface MessageProps extends WaitingProps {
  readonly message: QueuedMessage;
  readonly onChange: () => void;
}

function Message({ thread, live, message, onChange }: MessageProps) {
  const run = useTouched(live.page.run);
  const words = t().statusLine;
  const { as, id, text } = message;
  // The page has the text of a queued message, but not its attachments.
  const isWhole = text !== undefined && !message.hasFiles;
  return (
    <>
      <b>{words[as]}</b> <span>{visible(text ?? words.elsewhere)}</span>
      {as === "queued" && may("run") && (
        <>
          <Action class="quiet" onClick={() => takeBack(thread, live, id)}>
            {words.takeBack}
          </Action>
          {isWhole && (
            <button type="button" class="quiet" onClick={onChange}>
              {words.change}
            </button>
          )}
          {run.isActive && isWhole && (
            <Action class="quiet" onClick={() => sendNow(thread, live, message)}>
              {words.sendNow}
            </Action>
          )}
        </>
      )}
    </>
  );
}

interface ChangeProps extends WaitingProps {
  readonly message: QueuedMessage;
  readonly onClose: () => void;
}

function Change({ thread, live, message, onClose }: ChangeProps) {
  const [text, setText] = useState(message.text ?? "");
  const save = useRef<HTMLDivElement>(null);
  const focused = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => focused.current?.focus(), []);
  const words = t().statusLine;
  return (
    <div class="change-queued" ref={save}>
      <textarea
        aria-label={words.changed}
        rows={2}
        value={text}
        ref={focused}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.preventDefault();
            onClose();
          } else if (isSendingEnter(event)) {
            event.preventDefault();
            save.current?.querySelector<HTMLElement>(".save")?.click();
          }
        }}
      />
      <p class="row">
        <Action
          class="primary save"
          isOff={text.trim() === ""}
          onClick={async () => {
            await changeQueued(thread, live, message.id, text);
            onClose();
          }}
        >
          {words.save}
        </Action>
        <button type="button" class="quiet" onClick={onClose}>
          {t().shared.cancel}
        </button>
      </p>
    </div>
  );
}
