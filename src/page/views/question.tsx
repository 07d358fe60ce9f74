// A call that waits for an answer: in its thread, and in the inbox.

import {
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useReducer,
  useRef,
  useState,
} from "preact/hooks";
import { type Answer, type Interrupt, ProblemError } from "../../client/client.ts";
import { Plain, Problem, Time, visible } from "../components.tsx";
import { draftOf, saveDraft } from "../drafts.ts";
import { letterOf, useKey } from "../keys.ts";
import { keyOf } from "../questions.ts";
import { may, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { Asked, AskedIn } from "./asked.tsx";
import { Exact } from "./exact-text.tsx";
import { Edit } from "./question-edit.tsx";
import { Reply } from "./question-reply.tsx";

export interface QuestionProps {
  readonly ask: Interrupt;
  /** Whether keys answer it from anywhere. */
  readonly isOnly?: boolean;
  /** Rejects with what the server says. */
  readonly onAnswer: (answer: Answer) => Promise<void>;
  /** Absent: there is no "Later". */
  readonly onLater?: (() => void) | undefined;
}

/** A person who is about to click elsewhere must not allow what appears under the pointer. */
const APPEARING_MS = 300;

export function Question({ ask, isOnly = false, onAnswer, onLater }: QuestionProps) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isClosed, setClosed] = useState(false);
  const answer = async (given: Omit<Answer, "id">) => {
    setBusy(true);
    setProblem("");
    try {
      await onAnswer({ id: ask.id, ...given });
    } catch (error) {
      const isOver = error instanceof ProblemError && error.code === "interrupt_closed";
      setClosed(isOver);
      setProblem(isOver ? t().question.closed : messageOf(error));
    }
    setBusy(false);
  };
  const Body = BODIES[ask.kind];
  return (
    <article class="question" aria-label={titleOf(ask)}>
      <header>
        <h3>
          <Title {...ask} />
        </h3>
        {ask.expires_at && <Countdown at={ask.expires_at} />}
        {onLater && (
          <button type="button" class="quiet" onClick={onLater}>
            {t().question.later}
          </button>
        )}
      </header>
      {ask.asked_by && (
        <p class="asked-by">
          {t().question.askedBy} <Plain>{ask.asked_by.name}</Plain>
        </p>
      )}
      <Body ask={ask} isOnly={isOnly} isOff={isBusy || isClosed || !may("run")} answer={answer} />
      <Problem>{problem}</Problem>
    </article>
  );
}

/** In one line, for lists and for screen readers. */
export function titleOf({ kind, name, prompt }: Pick<Interrupt, "kind" | "name" | "prompt">): string {
  const words = t().question;
  return kind === "approval" ? words.title(name) : kind === "question" ? prompt : words.waitsFor(name);
}

function Title({ kind, name, prompt }: Interrupt) {
  const tool = (
    <code>
      <Plain>{name}</Plain>
    </code>
  );
  const { allowTool, frontEnd } = t().question;
  if (kind === "approval")
    return (
      <>
        {allowTool.before}
        {tool}
        {allowTool.after}
      </>
    );
  if (kind === "tool")
    return (
      <>
        {frontEnd} {tool}
      </>
    );
  return <Exact text={prompt} />;
}

/** The key of the text that is being written as its answer. */
const useDraft = (ask: Interrupt) => keyOf(useContext(AskedIn) ?? "", ask);

interface BodyProps {
  readonly ask: Interrupt;
  readonly isOff: boolean;
  readonly isOnly: boolean;
  readonly answer: (given: Omit<Answer, "id">) => Promise<void>;
}

function Approval({ ask, isOff, isOnly, answer }: BodyProps) {
  const [isSeen, setSeen] = useState(false);
  const [isCut, setCut] = useState(false);
  const [isSettled, setSettled] = useState(false);
  const [remember, setRemember] = useState<"" | "session" | "agent">("");
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
  const kept = remember === "" ? {} : { remember };
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
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the buttons in it.
    <div ref={card} class="approval" onKeyDown={onKey}>
      {isOnly && mayAllow && !form && <AnswerKeys allow={allow} deny={deny} />}
      <Asked args={ask.args} ask={ask} onSeen={onSeen} onCut={onCut} />
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
          <label class="remember">
            <span>{words.remember}</span>
            <select
              value={remember}
              onChange={(event) => setRemember(event.currentTarget.value as typeof remember)}
            >
              <option value="">{words.once}</option>
              <option value="session">{words.inThread}</option>
              <option value="agent">{words.withAgent}</option>
            </select>
          </label>
        </div>
      )}
    </div>
  );
}

/** Answers from anywhere, once the whole call was in sight. */
function AnswerKeys({ allow, deny }: { allow: () => void; deny: () => void }) {
  useKey("a", "allow", allow);
  useKey("d", "deny", deny);
  return null;
}

function Choice({ ask, isOff, answer }: BodyProps) {
  const draft = useDraft(ask);
  const { options = [], one_of_options: isClosedList } = ask;
  const words = t().question;
  const isSeveral = ask.args.kind === "multi_select";
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const respond = (message: string) => answer({ decision: "respond", message });
  const toggle = (option: string) =>
    setChosen(chosen.includes(option) ? chosen.filter((each) => each !== option) : [...chosen, option]);
  const none = (
    <button type="button" disabled={isOff} onClick={() => void answer({ decision: "deny" })}>
      {words.noAnswer}
    </button>
  );
  if (!may("run")) return <p class="empty">{options.map((option) => `• ${visible(option)}`).join("  ")}</p>;
  return (
    <div class="choice">
      {isSeveral ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void respond(options.filter((option) => chosen.includes(option)).join(", "));
          }}
        >
          {options.map((option) => (
            <label key={option} class="check">
              <input type="checkbox" checked={chosen.includes(option)} onChange={() => toggle(option)} />
              <Exact text={option} />
            </label>
          ))}
          <button type="submit" class="primary" disabled={isOff || chosen.length === 0}>
            {words.answer}
          </button>
        </form>
      ) : (
        options.length > 0 && (
          <div class="row">
            {options.map((option) => (
              <button key={option} type="button" disabled={isOff} onClick={() => void respond(option)}>
                <Exact text={option} />
              </button>
            ))}
          </div>
        )
      )}
      {isClosedList ? (
        <div class="row">{none}</div>
      ) : (
        <Reply
          draft={draft}
          label={options.length > 0 ? words.ownWords : words.yourAnswer}
          send={words.answer}
          isNeeded
          isOff={isOff}
          onSend={respond}
        >
          {none}
        </Reply>
      )}
    </div>
  );
}

function ClientTool({ ask, isOff, answer }: BodyProps) {
  const draft = useDraft(ask);
  return (
    <>
      <Asked args={ask.args} onSeen={() => {}} />
      {may("run") && (
        <Reply
          draft={draft}
          label={t().question.result}
          send={t().question.sendResult}
          isNeeded
          isOff={isOff}
          onSend={(message) => answer({ decision: "respond", message })}
        >
          <button type="button" disabled={isOff} onClick={() => void answer({ decision: "deny" })}>
            {t().question.impossible}
          </button>
        </Reply>
      )}
    </>
  );
}

const BODIES = { approval: Approval, question: Choice, tool: ClientTool } as const;

/** Before its end an open question counts down by seconds. */
const SOON_MS = 3_600_000;

function Countdown({ at }: { at: string }) {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const left = Date.parse(at) - Date.now();
  const isSoon = left < SOON_MS;
  useEffect(() => {
    const timer = setInterval(() => draw(undefined), isSoon ? 1000 : 60_000);
    return () => clearInterval(timer);
  }, [isSoon]);
  if (left <= 0) return <span class="countdown">{t().question.over}</span>;
  return (
    <span class="countdown">
      {t().question.expires}{" "}
      {isSoon ? <time dateTime={at}>{t().question.expiresIn(clock(left))}</time> : <Time at={at} />}
    </span>
  );
}

/** `4:09`. */
const clock = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};
