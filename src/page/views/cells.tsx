// The messages, calls and notes of a conversation, in order.

import type { VNode } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Cell, Lane, TextCell, ThoughtCell, UserCell } from "../../client/cells.ts";
import { blobOf } from "../../client/client.ts";
import { Action, Copy, Plain } from "../components.tsx";
import { Foldable } from "../foldable.tsx";
import { useTouched } from "../frame.ts";
import { duration } from "../numbers.ts";
import { openSpan } from "../open-span.ts";
import { hashOf } from "../routes.ts";
import { baseUrl } from "../session.ts";
import { t } from "../texts.ts";
import { download } from "./download.ts";
import { Markdown } from "./markdown.tsx";
import { Picture } from "./picture.tsx";
import { RatingButtons, RatingWords } from "./rating.tsx";
import { RunNote } from "./run-note.tsx";
import { Sources } from "./sources.tsx";
import { ThreadOf } from "./thread-of.ts";
import { AgentCard, ToolCard } from "./tool-card.tsx";
import { VersionsNav } from "./versions-nav.tsx";

/** The maximum number of recent cells to draw unless the user asks for more. */
const SHOWN = 1_000;
/** The number of cells that are drawn first when a conversation opens at its end. This is enough to fill a screen. */
const FIRST = 40;
const STEP = 60;

interface CellsProps {
  readonly lane: Lane;
  /** The id of a message that must be shown regardless of its age. */
  readonly reach?: string | undefined;
  /** Draws the most recent cells first, and the cells above them shortly after. */
  readonly isFromEnd?: boolean;
}

export function Cells({ lane, reach, isFromEnd = false }: CellsProps) {
  const { cells } = useTouched(lane);
  const [shown, setShown] = useState(isFromEnd ? FIRST : SHOWN);
  const count = cells.length;
  useEffect(() => {
    if (count === 0 || shown >= SHOWN) return undefined;
    const timer = setTimeout(() => setShown(shown + STEP < count ? shown + STEP : SHOWN));
    return () => clearTimeout(timer);
  }, [count, shown]);
  const reached = reach
    ? cells.findIndex(
        (cell) => ("id" in cell && cell.id === reach) || (cell.kind === "tool" && cell.call === reach),
      )
    : -1;
  const newest = Math.max(0, cells.length - shown);
  const hidden = reached < 0 ? newest : Math.min(newest, reached);
  return (
    <>
      {hidden > 0 && (
        <button type="button" class="earlier" onClick={() => setShown(shown + SHOWN)}>
          {t().messages.earlier}
        </button>
      )}
      {cells.map((cell, at) => (at < hidden || isSaidBefore(cell, cells[at - 1]) ? null : viewOf(cell)))}
    </>
  );
}

/** Returns true if the cell before the note, a stopped answer, already shows that the run was stopped. */
const isSaidBefore = (cell: Cell, before: Cell | undefined): boolean =>
  cell.kind === "note" &&
  cell.outcome === "stopped" &&
  STOPS.has(cell.reason) &&
  before?.kind === "text" &&
  before.state === "stopped" &&
  before.isKept === true;

/** Reasons that only mean that the run was stopped. */
const STOPS: ReadonlySet<string | undefined> = new Set(["cancelled", "interrupt"]);

const drawLane = (lane: Lane) => <Cells lane={lane} />;

const views = new WeakMap<Cell, VNode>();

/** Returns the same node for the same cell, so a growing lane draws only new cells. */
function viewOf(cell: Cell): VNode {
  const view = views.get(cell) ?? <CellView key={cell.key} cell={cell} />;
  views.set(cell, view);
  return view;
}

function CellView({ cell }: { cell: Cell }) {
  switch (cell.kind) {
    case "user":
      return <UserMessage cell={cell} />;
    case "text":
      return <AssistantText cell={cell} />;
    case "thought":
      return <Thought cell={cell} />;
    case "tool":
      return <ToolCard cell={cell} drawLane={drawLane} />;
    case "agent":
      return <AgentCard cell={cell} drawLane={drawLane} />;
    case "note":
      return <RunNote cell={cell} />;
  }
}

function UserMessage({ cell }: { cell: UserCell }) {
  const { actions } = useContext(ThreadOf);
  const words = t().messages;
  return (
    <article class="said" aria-label={words.you} data-message={cell.id}>
      {cell.attachments.length > 0 && (
        <ul class="attached">
          {cell.attachments.map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the attachments of a message do not change.
            <li key={index}>
              <Attached part={part} />
            </li>
          ))}
        </ul>
      )}
      {cell.text && (
        <div class="words" dir="auto">
          {said(cell.text)}
        </div>
      )}
      <VersionsNav message={cell.id} />
      <div class="actions">
        <Copy text={() => cell.text} />
        <CopyLink message={cell.id} />
        {actions && (
          <>
            <button type="button" class="quiet" onClick={() => actions.rewrite(cell)}>
              {words.rewrite}
            </button>
            <Action class="quiet retry" onClick={() => actions.retry(cell)}>
              {words.retry}
            </Action>
            <Action class="quiet" onClick={() => actions.fork(cell.id)}>
              {words.fork}
            </Action>
          </>
        )}
      </div>
    </article>
  );
}

/** Removes the tag around the context that an agent gives to a subagent. The tag is for the model, not for people. */
const said = (text: string): string =>
  /^<delegation_context>\n([\s\S]*)\n<\/delegation_context>$/.exec(text)?.[1] ?? text;

function CopyLink({ message }: { message: string }) {
  const { thread } = useContext(ThreadOf);
  // A thread shared by another user has no URL of its own.
  if (thread === "") return null;
  const link = () => `${baseUrl}/${hashOf({ view: "thread", thread, message })}`;
  return <Copy text={link} label={t().messages.copyLink} />;
}

function Attached({ part }: { part: UserCell["attachments"][number] }) {
  if (part.type === "image") return <Picture part={part} name={t().messages.attachedByYou} />;
  const name = part.name ?? part.media_type;
  return (
    <button type="button" class="file" onClick={() => download(blobOf(part), name)}>
      <Plain>{name}</Plain>
    </button>
  );
}

function AssistantText({ cell }: { cell: TextCell }) {
  const { text, state, id, at, isKept, sources } = useTouched(cell);
  const { thread, agent, actions } = useContext(ThreadOf);
  const [rated, setRated] = useState<"up" | "down">();
  const words = t().messages;
  return (
    <article class={`answer ${state}`} aria-label={agent} aria-busy={state === "open"} data-message={id}>
      <Markdown text={text} isWhole={state !== "open"} />
      {(state === "stopped" || state === "failed") && (
        <p class="aside">
          {isKept ? words.cut[state] : words.unfinished[state]}
          {actions && isKept && (
            <Action class="continue" onClick={actions.resume}>
              {words.resume}
            </Action>
          )}
        </p>
      )}
      {sources && <Sources sources={sources} />}
      {id !== undefined && <VersionsNav message={id} />}
      {(state === "done" || isKept) && (
        <div class="actions">
          <Copy text={() => text} />
          {id !== undefined && <CopyLink message={id} />}
          {thread !== "" && at !== undefined && (
            <Action class="quiet" onClick={() => openSpan(thread, id, at)}>
              {words.trace}
            </Action>
          )}
          {actions && (
            <>
              <Action class="quiet" onClick={() => actions.fork(id)}>
                {words.fork}
              </Action>
              <RatingButtons thread={thread} message={id} onRated={setRated} />
            </>
          )}
        </div>
      )}
      {rated && (
        <RatingWords
          key={rated}
          {...{ thread, message: id, rating: rated }}
          onClose={() => setRated(undefined)}
        />
      )}
    </article>
  );
}

/** The shortest duration to show. */
const WORTH_MS = 500;

function Thought({ cell }: { cell: ThoughtCell }) {
  const { text, state, ms } = useTouched(cell);
  const [choice, setChoice] = useState<boolean>();
  const isOpen = choice ?? state === "open";
  const time = ms !== undefined && ms >= WORTH_MS ? duration(ms) : undefined;
  return (
    <Foldable
      class="thought"
      isOpen={isOpen}
      onToggle={setChoice}
      line={state === "open" ? t().messages.thinking : t().messages.thought(time)}
    >
      <Markdown text={text} isWhole={state !== "open"} />
    </Foldable>
  );
}
