// The list of the user's threads: first a search field, then the threads that wait for an answer, then all other
// threads by age.

import { useState } from "preact/hooks";
import type { FoundThread, OpenInterrupt } from "../../client/client.ts";
import { type Outcome, outcomeOf } from "../../client/outcome.ts";
import { indexIn } from "../../lib/search.ts";
import { Empty, fullTime, Problem, visible } from "../components.tsx";
import { deletions, isDeleted } from "../deletions.ts";
import { ends } from "../ends.ts";
import { useTouched } from "../frame.ts";
import { ENDED_WELL, OUTCOME_MARKS } from "../outcome-marks.ts";
import { questions } from "../questions.ts";
import { hashOf } from "../routes.ts";
import { may, messageOf } from "../session.ts";
import { once, t } from "../texts.ts";
import { type Group, groupsOf, type Row } from "../thread-groups.ts";
import { readMoreThreads, searchThreads, threads } from "../threads.ts";
import { ThreadMenu } from "./thread-menu.tsx";

export function ThreadList({ current }: { current?: string | undefined }) {
  const { q, next, isRead, problem, ...read } = useTouched(threads);
  useTouched(deletions);
  useTouched(ends);
  const items = read.items.filter(({ id }) => !isDeleted(id));
  const asked = useTouched(questions);
  const asking = byThread(asked.items);
  const [opened, setOpened] = useState<FoundThread>();
  const groups: readonly (Pick<Group, "rows"> & Partial<Group>)[] = q
    ? [{ rows: items.map((thread) => ({ thread, isBranch: false })) }]
    : groupsOf(items, new Set(asking.keys()));
  const row = (each: Row) => (
    <ThreadRow
      key={each.thread.id}
      {...each}
      q={q}
      asks={asking.get(each.thread.id)}
      isKnown={asked.isRead && !asked.isCut}
      isCurrent={each.thread.id === current}
      onMenu={setOpened}
    />
  );
  return (
    <section class="threads" aria-label={t().threadList.title}>
      <input
        type="search"
        class="search"
        placeholder={t().threadList.search}
        aria-label={t().threadList.searchIn}
        maxLength={256}
        value={q}
        onInput={(event) => searchThreads(event.currentTarget.value)}
      />
      <div class="groups" aria-busy={!isRead}>
        <Problem>{problem}</Problem>
        {groups.map(({ rows, ...group }) => (
          <section key={titleOf(group)} aria-label={titleOf(group)}>
            {!q && <h2>{titleOf(group)}</h2>}
            <ul>{rows.map(row)}</ul>
          </section>
        ))}
        {isRead && items.length === 0 && !problem && <Nothing q={q} isCut={next !== undefined} />}
        {next !== undefined && isRead && <More q={q} />}
      </div>
      {opened && (
        <ThreadMenu thread={opened} isCurrent={opened.id === current} onClose={() => setOpened(undefined)} />
      )}
    </section>
  );
}

const titleOf = ({ title }: Partial<Group>) =>
  title === undefined ? t().threadList.found : t().threadList.groups[title];

const Nothing = ({ q, isCut }: { q: string; isCut: boolean }) => (
  <Empty>
    {q
      ? isCut
        ? t().threadList.noneNew
        : t().threadList.none
      : may("run")
        ? t().door.yourConversations
        : t().door.nothingToRead}
  </Empty>
);

function More({ q }: { q: string }) {
  const [problem, setProblem] = useState("");
  const [isReading, setReading] = useState(false);
  const more = async () => {
    setReading(true);
    setProblem("");
    await readMoreThreads().catch((error) => setProblem(messageOf(error)));
    setReading(false);
  };
  return (
    <>
      <button type="button" class="more" disabled={isReading} onClick={more}>
        {isReading ? t().shared.reading : q ? t().threadList.searchOlder : t().threadList.older}
      </button>
      <Problem>{problem}</Problem>
    </>
  );
}

interface ThreadRowProps extends Row {
  readonly q: string;
  readonly asks: readonly OpenInterrupt[] | undefined;
  /** True if `asks` contains all open questions. */
  readonly isKnown: boolean;
  readonly isCurrent: boolean;
  readonly onMenu: (thread: FoundThread) => void;
}

function ThreadRow({ thread, isBranch, q, asks, isKnown, isCurrent, onMenu }: ThreadRowProps) {
  const title = titleOfThread(thread);
  const hit = thread.match && { message: thread.match.message_id, words: q.trim() };
  const outcome = isKnown || asks ? endOf(thread, asks !== undefined) : "done";
  const [mark, tone] = OUTCOME_MARKS[outcome];
  const word = asks ? wordOf(asks) : !ENDED_WELL.has(outcome) && t().outcomes[outcome];
  return (
    <li class={isBranch ? "thread branch" : "thread"}>
      <a
        href={hashOf({ view: "thread", thread: thread.id, ...hit })}
        aria-current={isCurrent ? "page" : undefined}
        onKeyDown={moveInList}
        onContextMenu={(event) => {
          if (!may("run")) return;
          event.preventDefault();
          onMenu(thread);
        }}
      >
        <bdi class="title" title={title}>
          {title}
        </bdi>
        <time dateTime={thread.updated_at} title={fullTime(thread.updated_at)}>
          {clockOrDay(thread.updated_at)}
        </time>
        {word && (
          <span class={`status ${tone}`}>
            <span aria-hidden="true">{mark}</span> {word}
          </span>
        )}
        {thread.match && <Excerpt text={thread.match.text} q={q} />}
      </a>
      {may("run") && (
        <button
          type="button"
          class="quiet"
          tabIndex={-1}
          aria-label={t().threadList.menuOf(title)}
          onKeyDown={moveInList}
          onClick={() => onMenu(thread)}
        >
          ⋯
        </button>
      )}
    </li>
  );
}

/** Each row is a single tab stop. The arrow keys move to the other rows and to the button of a row. */
function moveInList(event: KeyboardEvent): void {
  const at = event.currentTarget as HTMLElement;
  const row = at.closest(".thread");
  const rows = [...document.querySelectorAll(".threads .thread")];
  const other = rows[rows.indexOf(row ?? at) + (event.key === "ArrowDown" ? 1 : -1)];
  const target = {
    ArrowDown: other?.querySelector<HTMLElement>("a"),
    ArrowUp: other?.querySelector<HTMLElement>("a"),
    ArrowRight: row?.querySelector<HTMLElement>("button"),
    ArrowLeft: row?.querySelector<HTMLElement>("a"),
  }[event.key];
  if (!target) return;
  event.preventDefault();
  target.focus();
}

/** Returns the id for a thread without a title. */
export const titleOfThread = ({ title, id }: Pick<FoundThread, "title" | "id">) => visible(title || id);

/**
 * Returns how the most recent run ended. Uses the record of that run if it has already been read. A run that is waiting
 * but has no open question was stopped.
 */
function endOf({ id, status }: FoundThread, isAsking: boolean): Outcome {
  const run = ends.newest.get(id);
  if (status === "busy") return isAsking ? "waits" : "running";
  if (run) return outcomeOf(run, isAsking);
  if (status === "error") return outcomeOf({ status: "error" }, isAsking);
  if (status === "idle") return "done";
  return outcomeOf({ status: "interrupted", stop_reason: "interrupt" }, isAsking);
}

const KINDS: Readonly<Record<OpenInterrupt["kind"], (name: string) => string>> = {
  approval: (name) => t().threadList.approval(visible(name)),
  question: () => t().threadList.asks,
  tool: (name) => t().threadList.waitsFor(visible(name)),
  connect: () => t().threadList.asks,
};

function wordOf([first, ...others]: readonly OpenInterrupt[]): string {
  if (others.length > 0) return t().threadList.questions(others.length + 1);
  return first ? KINDS[first.kind](first.name) : "";
}

function byThread(items: readonly OpenInterrupt[]): ReadonlyMap<string, readonly OpenInterrupt[]> {
  const all = new Map<string, OpenInterrupt[]>();
  for (const item of items) all.set(item.thread_id, [...(all.get(item.thread_id) ?? []), item]);
  return all;
}

const clock = once(
  (locale) => new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }),
);
const day = once((locale) => new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" }));

function clockOrDay(at: string): string {
  const date = new Date(at);
  return (date.toDateString() === new Date().toDateString() ? clock() : day()).format(date);
}

function Excerpt({ text, q }: { text: string; q: string }) {
  const shown = visible(text.replace(/\s+/g, " "));
  const at = indexIn(shown.toLowerCase(), q.trim().toLowerCase());
  if (at < 0) return <span class="excerpt">{shown}</span>;
  const end = at + q.trim().length;
  return (
    <span class="excerpt">
      {shown.slice(0, at)}
      <mark>{shown.slice(at, end)}</mark>
      {shown.slice(end)}
    </span>
  );
}
