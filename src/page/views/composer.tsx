// The message field, the choice of agent, and the button that stops the run in progress.

import type { RefObject, TargetedEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RunNow, UserCell } from "../../client/cells.ts";
import type { Interrupt, Part, Run } from "../../client/client.ts";
import { Problem, visible } from "../components.tsx";
import { draftOf, forgetRewrite, rewriteOf, saveDraft, saveRewrite } from "../drafts.ts";
import { isComposing, isSendingEnter } from "../enter.ts";
import { useTouched } from "../frame.ts";
import { nameOfKeys, wasByLetter } from "../keys.ts";
import type { LiveThread, OpenThread } from "../live.ts";
import { choiceOf, type OutgoingMessage, saveChoice } from "../outbox.ts";
import { isTouch } from "../pointer.ts";
import { sendAnswers } from "../questions.ts";
import { stopRun } from "../run-commands.ts";
import { contentOf, deliver, startRun, steer, unfinished } from "../sending.ts";
import { messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { AttachButton, Attached, type Attachments } from "./attachments.tsx";
import { BeforeSending } from "./before-sending.tsx";
import { chosenOf, isDemo, Picker, useAgents } from "./picker.tsx";
import { Suggestions } from "./suggestions.tsx";

export interface ComposerProps {
  /** Undefined for a new conversation. */
  readonly thread?: string | undefined;
  readonly open?: OpenThread | undefined;
  readonly attachments: Attachments;
  readonly rewriting?: UserCell | undefined;
  readonly onRewritten: () => void;
  /** Called when the server has accepted a run. */
  readonly onStarted: (run: Run) => void;
  readonly placeholder: string;
}

/** Placeholders that the composer watches while there is no thread. */
const NO_ASKS = { asks: [] as readonly Interrupt[] };
const NO_RUN = { isActive: false, id: undefined as string | undefined };

export function Composer(props: ComposerProps) {
  const { thread, open, attachments, rewriting } = props;
  const run = useTouched(open?.live.page.run ?? NO_RUN);
  const { asks } = useTouched(open?.live.page ?? NO_ASKS);
  const [isAsking, setAsking] = useState(false);
  const [choice, setChoice] = useState(() => choiceOf(thread));
  const field = useRef<HTMLTextAreaElement>(null);
  const draft = useDraft(props, field);
  const { text, write, isSending, problem, setProblem, sending } = draft;
  const agents = useAgents();
  const agent = chosenOf(agents, choice.agent ?? open?.live.info?.agent);

  const asked = rewriting ? undefined : askedBy(asks);
  const send = (how: "steer" | "queue", isWithdrawing = false) => {
    const content = contentOf(text, attachments.parts);
    if (content === undefined || isSending) return;
    if (asks.length > 0 && thread && !rewriting && !isWithdrawing) {
      if (!asked || attachments.parts.length > 0) return setAsking(true);
      const message = answerIn(asked, text);
      if (message === undefined) return setProblem(t().composer.oneOf((asked.options ?? []).join(", ")));
      return void sending(() =>
        sendAnswers(thread, asked.run_id, [{ id: asked.id, decision: "respond", message }]),
      );
    }
    void sending(() => sendMessage(props, { run, how, text, content, choice }));
  };
  const stopRewriting = () => {
    props.onRewritten();
    draft.restore();
  };

  const isBusy = run.isActive && !rewriting;
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send("steer");
      }}
      onPaste={(event) => pasted(event, attachments)}
    >
      {rewriting && (
        <p class="banner">
          {t().composer.rewriting}
          <button type="button" class="quiet" onClick={stopRewriting}>
            {t().composer.cancel}
          </button>
        </p>
      )}
      <div class="box">
        <Attached attachments={attachments} />
        <textarea
          ref={field}
          aria-label={t().writing.message}
          dir="auto"
          placeholder={placeholderOf(asked, isBusy, props)}
          rows={1}
          value={text}
          enterkeyhint={isTouch() ? "enter" : "send"}
          onInput={(event) => write(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape" && rewriting && !isComposing(event)) {
              event.preventDefault();
              return stopRewriting();
            }
            // On-screen keyboards have no Shift key to hold, so Enter inserts a line break and the button sends.
            if (!isSendingEnter(event) || isTouch()) return;
            event.preventDefault();
            send(event.altKey ? "queue" : "steer");
          }}
        />
        <div class="bar">
          <div class="options">
            <AttachButton attachments={attachments} />
            <Picker
              agents={agents}
              choice={choice}
              agent={agent}
              onChoose={(chosen) => {
                setChoice(chosen);
                saveChoice(thread, chosen);
              }}
            />
          </div>
          <div class="sending">
            {isSending && <span class="quietly">{t().writing.sending}</span>}
            {isBusy && thread && open && run.id && (
              <StopButtons thread={thread} live={open.live} onProblem={setProblem} />
            )}
            <SendButtons
              {...{ isBusy, isSending, isRewriting: rewriting !== undefined }}
              isEmpty={contentOf(text, attachments.parts) === undefined}
              onQueue={() => send("queue")}
            />
          </div>
        </div>
      </div>
      <Problem>{problem || attachments.problem}</Problem>
      {isAsking && asks.length > 0 && thread && (
        <BeforeSending
          asks={asks}
          onClose={() => setAsking(false)}
          onWithdraw={() => {
            setAsking(false);
            send("steer", true);
          }}
          onDeny={async () => {
            await sending(() => denyAll(thread, asks, text.trim()));
            setAsking(false);
          }}
        />
      )}
      {agent && isDemo(agent) && <p class="demo-note">{t().door.demo}</p>}
      {!thread && (
        <Suggestions
          texts={agent?.suggestions ?? []}
          onChoose={(suggestion) => {
            write(suggestion);
            field.current?.focus();
          }}
        />
      )}
    </form>
  );
}

/** The text that the user is writing, which survives a reload, and the state of sending it. */
function useDraft(props: ComposerProps, field: RefObject<HTMLTextAreaElement | null>) {
  const { thread, attachments, rewriting } = props;
  const [text, setText] = useState(() => draftOf(thread));
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState("");

  const write = (value: string) => {
    setText(value);
    if (!rewriting) saveDraft(thread, value);
    else if (thread) saveRewrite(thread, { id: rewriting.id, text: value });
  };
  /** Restores the draft from before a message was rewritten. */
  const restore = () => {
    if (thread) forgetRewrite(thread);
    setText(draftOf(thread));
    attachments.restore();
  };
  const sending = async (send: () => Promise<void>) => {
    setSending(true);
    setProblem("");
    try {
      await send();
      if (rewriting) restore();
      else {
        saveDraft(thread, "");
        setText("");
        attachments.clear();
      }
    } catch (error) {
      setProblem(messageOf(error));
    }
    setSending(false);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: runs only once, to continue sending after a reload.
  useEffect(() => {
    const left = unfinished(thread);
    if (!left) return;
    setText(textIn(left));
    void sending(async () => props.onStarted(await deliver(thread, left)));
  }, []);
  useLayoutEffect(() => {
    if (!rewriting || !thread) return;
    const kept = rewriteOf(thread);
    const words = kept?.id === rewriting.id ? kept.text : rewriting.text;
    saveRewrite(thread, { id: rewriting.id, text: words });
    setText(words);
    attachments.borrow(rewriting.attachments as Part[]);
    field.current?.focus();
  }, [rewriting, thread, attachments.borrow, field]);
  useLayoutEffect(() => {
    const { current: at } = field;
    if (!at || isTouch() || (thread && wasByLetter())) return;
    at.focus();
    at.setSelectionRange(at.value.length, at.value.length);
  }, [thread, field]);

  return { text, write, restore, isSending, problem, setProblem, sending };
}

interface MessageToSend {
  readonly run: Pick<RunNow, "isActive" | "id">;
  readonly how: "steer" | "queue";
  readonly text: string;
  readonly content: string | Part[];
  readonly choice: ReturnType<typeof choiceOf>;
}

/** Sends to the run in progress, or starts a run. */
async function sendMessage(
  props: ComposerProps,
  { run, how, text, content, choice }: MessageToSend,
): Promise<void> {
  const { thread, open, rewriting } = props;
  if (run.isActive && run.id && thread && how === "steer" && !rewriting) {
    const id = await steer(thread, run.id, content);
    if (id) return open?.wait({ id, as: "steering", text });
  }
  const isQueued = run.isActive && !rewriting;
  const start = () => startRun({ thread, content, choice, isQueued, replaces: rewriting?.id });
  const started = await (rewriting && open ? open.rewind(start) : start());
  if (isQueued) open?.wait({ id: started.id, as: "queued", text, hasFiles: typeof content !== "string" });
  if (rewriting) props.onRewritten();
  props.onStarted(started);
}

function placeholderOf(
  asked: Interrupt | undefined,
  isBusy: boolean,
  { placeholder }: ComposerProps,
): string {
  if (asked) return t().composer.answers(visible(asked.prompt));
  return isBusy ? t().writing.toRun : placeholder;
}

interface SendButtonsProps {
  readonly isBusy: boolean;
  readonly isEmpty: boolean;
  readonly isSending: boolean;
  readonly isRewriting: boolean;
  readonly onQueue: () => void;
}

/** While a run is in progress, the button appears only if a message has been written. */
function SendButtons({ isBusy, isEmpty, isSending, isRewriting, onQueue }: SendButtonsProps) {
  if (isBusy && isEmpty) return null;
  return (
    <>
      {isBusy && (
        <button type="button" disabled={isSending} onClick={onQueue} title={nameOfKeys("Alt", "Enter")}>
          {t().writing.queue}
        </button>
      )}
      <button type="submit" class="primary" disabled={isEmpty || isSending}>
        {isRewriting ? t().composer.rewrite : isBusy ? t().writing.steer : t().writing.send}
      </button>
    </>
  );
}

function StopButtons({
  thread,
  live,
  onProblem,
}: {
  thread: string;
  live: LiveThread;
  onProblem: (problem: string) => void;
}) {
  const stop = (mode: "cancel" | "interrupt") => () =>
    void stopRun(thread, live, mode).catch((error) => onProblem(messageOf(error)));
  return (
    <>
      <button type="button" class="quiet" onClick={stop("interrupt")} title="Esc">
        {t().writing.afterStep}
      </button>
      <button type="button" class="danger" onClick={stop("cancel")} title={t().writing.twice}>
        ■ {t().writing.stop}
      </button>
    </>
  );
}

function pasted(event: TargetedEvent<HTMLFormElement, ClipboardEvent>, attachments: Attachments): void {
  const files = [...(event.clipboardData?.files ?? [])];
  if (files.length === 0) return;
  event.preventDefault();
  void attachments.add(files);
}

/** Returns the question that a message answers, if exactly one is open. */
const askedBy = (asks: readonly Interrupt[]): Interrupt | undefined =>
  asks.length === 1 && asks[0]?.kind === "question" ? asks[0] : undefined;

/** Returns the text as an answer, or undefined if only the options are allowed and the text does not match one. */
function answerIn({ options = [], one_of_options: isClosed }: Interrupt, text: string): string | undefined {
  const said = text.trim();
  const option = options.find((each) => each.toLowerCase() === said.toLowerCase());
  return isClosed ? option : (option ?? said);
}

/** Sends the answers of each run together. */
async function denyAll(thread: string, asks: readonly Interrupt[], message: string): Promise<void> {
  for (const run of new Set(asks.map(({ run_id }) => run_id))) {
    const mine = asks.filter(({ run_id }) => run_id === run);
    await sendAnswers(
      thread,
      run,
      mine.map(({ id }) => ({ id, decision: "deny", ...(message ? { message } : {}) })),
    );
  }
}

/** Returns the text of a run that was being sent. */
const textIn = ({ run }: OutgoingMessage): string => {
  const [message] = run.messages ?? [];
  if (!message) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
};
