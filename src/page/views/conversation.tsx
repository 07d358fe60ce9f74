// A thread: its messages, the composer, and its details at the side.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { UserCell } from "../../client/cells.ts";
import { Empty, Problem } from "../components.tsx";
import { rewriteOf } from "../drafts.ts";
import { Drawer } from "../drawer.tsx";
import { isComposing } from "../enter.ts";
import { type FollowedEnd, followEnd } from "../follow-end.ts";
import { useTouched } from "../frame.ts";
import { useKey } from "../keys.ts";
import { type LiveThread, type OpenThread, openThread } from "../live.ts";
import type { RunChoice } from "../outbox.ts";
import { hasPlace } from "../places.ts";
import { DRAWER, go, hashOf, useRoute } from "../routes.ts";
import { stopRun } from "../run-commands.ts";
import { contentOf, startRun } from "../sending.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { readThreads } from "../threads.ts";
import { useAttachments } from "./attachments.tsx";
import { Cells } from "./cells.tsx";
import { Composer } from "./composer.tsx";
import { dropInto } from "./drop.ts";
import { Questions } from "./questions.tsx";
import { WithRatings } from "./rating.tsx";
import { Side } from "./side.tsx";
import { StatusLine } from "./status-line.tsx";
import { ThreadHead } from "./thread-head.tsx";
import { type MessageActions, ThreadOf } from "./thread-of.ts";
import { useKeptFocus } from "./use-kept-focus.ts";
import { useMedia } from "./use-media.ts";
import { usePlace } from "./use-place.ts";
import { WithVersions } from "./versions-nav.tsx";
import { InWorkspace } from "./workspace.tsx";

export interface ConversationProps {
  readonly thread: string;
  readonly run?: string | undefined;
  readonly tab?: string | undefined;
}

export function Conversation({ thread, run, tab }: ConversationProps) {
  const [open, setOpen] = useState<OpenThread>();
  useEffect(() => {
    const opened = openThread(thread);
    setOpen(opened);
    return () => opened.close();
  }, [thread]);
  return open ? <OpenConversation thread={thread} run={run} tab={tab} open={open} /> : null;
}

function OpenConversation({ thread, run, tab, open }: ConversationProps & { open: OpenThread }) {
  const { live } = open;
  const { state, problem, connection } = useTouched(live);
  const attachments = useAttachments(thread);
  const [rewriting, setRewriting] = useState<UserCell>();
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const isReady = state === "ready";
  useEffect(() => {
    if (!isReady || tab === undefined || !matchMedia(SIDE_IS_DRAWER).matches) return;
    keepBelowDrawer(hashOf({ view: "thread", thread, run }));
    setDrawerOpen(true);
  }, [isReady, thread, run, tab]);
  const rewriteLast = useCallback(() => {
    const last = live.page.lane.cells.findLast((cell) => cell.kind === "user");
    if (last && !live.page.run.isActive && may("run")) setRewriting(last);
  }, [live]);
  useKey("e", "rewrite", rewriteLast);
  // Resumes an action that a reload interrupted.
  useEffect(() => {
    const kept = state === "ready" ? rewriteOf(thread) : undefined;
    const cell = live.page.lane.cells.find((each) => each.kind === "user" && each.id === kept?.id);
    if (cell?.kind === "user" && may("run")) setRewriting(cell);
  }, [state, thread, live]);
  useStopKey(thread, live);
  const main = useRef<HTMLElement>(null);
  useKeptFocus(main);
  const onStarted = () => {
    if (state === "missing" || state === "failed") open.again();
    readThreads();
  };
  const { todos } = useTouched(live.page);
  const isSideDrawer = useMedia(SIDE_IS_DRAWER);
  const isSideFolded = isSideDrawer || (tab === undefined && todos.length === 0);
  const side = (tab: string | undefined) => <Side thread={thread} page={live.page} run={run} tab={tab} />;
  return (
    <>
      <main
        ref={main}
        class={
          state === "loading" && connection !== "reconnecting" ? "conversation is-loading" : "conversation"
        }
        aria-label={t().conversation.title}
        {...dropInto(attachments.add)}
      >
        <ThreadHead live={live} onDetails={() => setDrawerOpen(true)} />
        <Log thread={thread} open={open} onRewrite={setRewriting} />
        <div class="foot">
          <StatusLine thread={thread} live={live} />
          {state === "failed" && (
            <Problem>
              {problem}{" "}
              <button type="button" onClick={open.again}>
                {t().conversation.again}
              </button>
            </Problem>
          )}
          {may("run") && state !== "missing" && (
            <Composer
              thread={thread}
              open={open}
              attachments={attachments}
              rewriting={rewriting}
              placeholder={t().composer.reply}
              onRewritten={() => setRewriting(undefined)}
              onStarted={onStarted}
            />
          )}
        </div>
      </main>
      {state !== "missing" && (
        <aside
          class={`column details ${isSideFolded ? "is-folded" : ""}`}
          aria-label={t().conversation.details}
        >
          {side(isSideDrawer ? undefined : tab)}
        </aside>
      )}
      {isDrawerOpen && (
        <Drawer title={t().conversation.details} class="wide details" onClose={() => setDrawerOpen(false)}>
          {side(tab)}
        </Drawer>
      )}
    </>
  );
}

/**
 * On narrower screens, the side panel would leave too little room for the messages. Its tabs stay at the edge, and each
 * opens a drawer.
 */
const SIDE_IS_DRAWER = "(max-width: 75rem)";

/**
 * If the URL opened a drawer, adds a history entry for `hash` below it. Back then closes the drawer and shows only the
 * conversation.
 */
function keepBelowDrawer(hash: string): void {
  if (history.state?.isDrawer) return;
  const beside = location.hash;
  history.replaceState(null, "", hash);
  history.pushState(DRAWER, "", beside);
}

function Log({
  thread,
  open,
  onRewrite,
}: {
  thread: string;
  open: OpenThread;
  onRewrite: (cell: UserCell) => void;
}) {
  const { live } = open;
  const { page, state, info, connection } = useTouched(live);
  const { asks } = useTouched(page);
  const scroller = useRef<HTMLElement>(null);
  const [end, setEnd] = useState<FollowedEnd>();
  useEffect(() => {
    if (!scroller.current) return;
    const followed = followEnd(scroller.current);
    setEnd(followed);
    return () => followed.close();
  }, []);
  const route = useRoute();
  const reach = route.view === "thread" ? route.message : undefined;
  usePlace({ thread, route, scroller, end });
  const stay = useCallback(() => end?.leave(), [end]);
  const of = useMemo(() => {
    const answerAgain = async ({ id, text, attachments }: UserCell, choice: RunChoice) => {
      const content = contentOf(text, attachments) ?? text;
      await open.rewind(() => startRun({ thread, content, choice, replaces: id, isQueued: false }));
      scroller.current?.focus({ preventScroll: true });
    };
    const actions: MessageActions = {
      rewrite: onRewrite,
      retry: (message) => answerAgain(message, {}),
      async again(choice) {
        const last = page.lane.cells.findLast((cell) => cell.kind === "user");
        if (last) await answerAgain(last, choice);
      },
      async resume() {
        await client.start(thread, { continue: true });
        scroller.current?.focus({ preventScroll: true });
      },
      async fork(message_id) {
        const made = await client.threads.fork(thread, { message_id });
        readThreads();
        go({ view: "thread", thread: made.id });
      },
    };
    return { thread, agent: info?.agent ?? t().sharing.assistant, actions: may("run") ? actions : undefined };
  }, [thread, info?.agent, open, onRewrite, page]);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it. */}
      <section class="log" ref={scroller} tabIndex={0} aria-label={t().conversation.messages}>
        <div class="messages">
          <h2 class="unseen">{t().conversation.messages}</h2>
          <ThreadOf.Provider value={of}>
            <WithVersions thread={thread} open={open} onLeave={stay}>
              <InWorkspace agent={info?.agent} lane={page.lane}>
                <WithRatings thread={thread} isReady={state === "ready"}>
                  <Cells
                    lane={page.lane}
                    reach={reach}
                    isFromEnd={reach === undefined && !hasPlace(thread)}
                  />
                </WithRatings>
              </InWorkspace>
            </WithVersions>
          </ThreadOf.Provider>
          {state === "loading" && (
            <Empty>{connection === "reconnecting" ? t().conversation.unreachable : t().shared.reading}</Empty>
          )}
          {state === "missing" && (
            <Empty>
              {t().conversation.missing} <a href={hashOf({ view: "new" })}>{t().door.toStart}</a>
            </Empty>
          )}
          {state === "ready" && page.lane.cells.length === 0 && <Empty>{t().conversation.first}</Empty>}
          {asks.length > 0 && <Questions thread={thread} asks={asks} isOnly={asks.length === 1} />}
        </div>
      </section>
      {end && <ToEnd end={end} />}
    </>
  );
}

function ToEnd({ end }: { end: FollowedEnd }) {
  const { isFollowing, isWhole } = useTouched(end);
  if (isFollowing || isWhole) return null;
  return (
    <button type="button" class="to-end" onClick={end.goToEnd}>
      ↓ {t().conversation.toEnd}
    </button>
  );
}

const TWICE_MS = 2_000;

/** Returns whether the element is in a text field or a list that handles Escape itself. */
function isWriting(at: EventTarget | null): boolean {
  if (at instanceof HTMLTextAreaElement) return at.value !== "";
  return at instanceof Element && at.closest("input, select, [contenteditable]") !== null;
}

/** Escape stops the run after the current step. A second Escape stops it at once. */
function useStopKey(thread: string, live: LiveThread): void {
  useEffect(() => {
    let last = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      const { run } = live.page;
      if (event.key !== "Escape" || event.defaultPrevented || isComposing(event) || isWriting(event.target))
        return;
      if (!run.isActive || !run.id || !may("run") || document.querySelector("dialog[open]")) return;
      const isSecond = event.timeStamp - last < TWICE_MS;
      last = event.timeStamp;
      // The stream reports the result.
      void stopRun(thread, live, isSecond ? "cancel" : "interrupt").catch(() => {});
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [thread, live]);
}
