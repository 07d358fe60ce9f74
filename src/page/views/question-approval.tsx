// Asks for approval of a call. Shows the whole call and the possible answers.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { draftOf, saveDraft } from "../drafts.ts";
import { letterOf, useKey } from "../keys.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { CallArguments } from "./asked.tsx";
import { type BodyProps, useDraft } from "./question-body.ts";
import { Edit } from "./question-edit.tsx";
import { Remember, type RememberChoice } from "./question-remember.tsx";
import { Reply } from "./question-reply.tsx";

/** The time before the buttons react, in ms. A click intended for something else must not allow a call. */
const APPEARING_MS = 300;

export function Approval({ ask, isOff, isOnly, answer }: BodyProps) {
  const [isSeen, setSeen] = useState(false);
  const [isCut, setCut] = useState(false);
  const [isSettled, setSettled] = useState(false);
  const [kept, setKept] = useState<RememberChoice>({});
  const draft = useDraft(ask);
  const [form, setForm] = useState<"edit" | "deny" | undefined>(draftOf(draft) ? "deny" : undefined);
  const opened = useRef<"edit" | "deny" | undefined>(undefined);
  const open = (which: "edit" | "deny") => {
    opened.current = which;
    setForm(which);
  };
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), APPEARING_MS);
    return () => clearTimeout(timer);
  }, []);
  useLayoutEffect(() => {
    if (!form) card.current?.querySelector<HTMLElement>(`.opens-${opened.current}`)?.focus();
  }, [form]);
  const onSeen = useCallback(() => setSeen(true), []);
  const onCut = useCallback(() => setCut(true), []);
  const words = t().question;
  const mayAllow = isSeen && isSettled && !isOff;
  const allow = () => mayAllow && void answer({ decision: "approve", ...kept });
  const deny = () => isSettled && !isOff && void answer({ decision: "deny", ...kept });
  const onKey = (event: KeyboardEvent) => {
    const act = { a: allow, d: deny }[letterOf(event) ?? ""];
    if (!act || form) return;
    event.preventDefault();
    act();
  };
  if (form === "edit")
    return (
      <Edit
        args={ask.args}
        isOff={isOff}
        onSend={(args) => answer({ decision: "edit", args })}
        onCancel={() => setForm(undefined)}
      />
    );
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the handler adds keys for the buttons within the element.
    <div ref={card} class="approval" onKeyDown={onKey}>
      {isOnly && mayAllow && !form && <AnswerKeys allow={allow} deny={deny} />}
      <CallArguments args={ask.args} ask={ask} onSeen={onSeen} onCut={onCut} />
      {may("run") && isCut && !isSeen && (
        <p class="hint">
          {words.moreToRead}{" "}
          <button
            type="button"
            class="quiet"
            onClick={() => card.current?.querySelector(".end")?.scrollIntoView({ block: "nearest" })}
          >
            {words.showEnd}
          </button>{" "}
          {words.thenAllow}
        </p>
      )}
      {form === "deny" && (
        <Reply
          draft={draft}
          label={words.whyNot}
          send={words.deny}
          isOff={isOff}
          onSend={(message) => answer({ decision: "deny", ...kept, ...(message ? { message } : {}) })}
          isOpened={opened.current === "deny"}
          onCancel={() => {
            saveDraft(draft, "");
            opened.current = "deny";
            setForm(undefined);
          }}
        />
      )}
      {may("run") && !form && (
        <div class="row actions">
          <button type="button" class="primary" disabled={!mayAllow} onClick={allow}>
            {words.allow}
          </button>
          <button type="button" disabled={isOff || !isSettled} onClick={deny}>
            {words.deny}
          </button>
          <button type="button" class="opens-deny" disabled={isOff} onClick={() => open("deny")}>
            {words.denyBecause}
          </button>
          <button type="button" class="opens-edit" disabled={isOff || !isSeen} onClick={() => open("edit")}>
            {words.edit}
          </button>
          {ask.remember_options?.length !== 0 && <Remember ask={ask} kept={kept} onKept={setKept} />}
        </div>
      )}
    </div>
  );
}

/** Keys that answer from anywhere once the whole call has been visible. */
function AnswerKeys({ allow, deny }: { allow: () => void; deny: () => void }) {
  useKey("a", "allow", allow);
  useKey("d", "deny", deny);
  return null;
}
