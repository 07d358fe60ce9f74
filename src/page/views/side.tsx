// Beside a conversation: its todos, what it asks, its files, and what its runs did.

import type { Page, Todo } from "../../client/cells.ts";
import { Empty, Tabs, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { lazy } from "../lazy.tsx";
import { go } from "../routes.ts";
import { titleOf } from "./question.tsx";

const Files = lazy(async () => (await import("./files.tsx")).Files);
const RawEvents = lazy(async () => (await import("./events.tsx")).RawEvents);
const Trace = lazy(async () => (await import("./trace.tsx")).Trace);

export interface SideProps {
  readonly thread: string;
  readonly page: Page;
  /** The run of the address, else the newest. */
  readonly run: string | undefined;
  readonly tab: string | undefined;
}

export function Side({ thread, page, run: given, tab = "todos" }: SideProps) {
  const { todos, asks } = useTouched(page);
  const newest = useTouched(page.run).id;
  const run = given ?? newest;
  const done = todos.filter(({ status }) => status === "done").length;
  return (
    <Tabs
      label="Details"
      current={tab}
      onChange={(name) => go({ view: "thread", thread, tab: name })}
      tabs={{
        todos: {
          title: todos.length > 0 ? `Todos ${done}/${todos.length}` : "Todos",
          body: () => <Todos todos={todos} />,
        },
        questions: {
          title: asks.length > 0 ? `Questions ${asks.length}` : "Questions",
          body: () => <Asking asks={asks} />,
        },
        files: { title: "Files", body: () => <Files thread={thread} live={page.run} /> },
        trace: {
          title: "Trace",
          body: () => (
            <Trace thread={thread} run={run} live={run === newest ? page.run : undefined} isBeside />
          ),
        },
        events: { title: "Events", body: () => <RawEvents thread={thread} run={run} /> },
      }}
    />
  );
}

function Asking({ asks }: Pick<Page, "asks">) {
  if (asks.length === 0)
    return (
      <Empty>
        Nothing waits for an answer. What the agent asks, and calls that need your permission, appear here.
      </Empty>
    );
  return (
    <ul class="asking-list">
      {asks.map((ask) => (
        <li key={ask.id}>
          <button type="button" onClick={showQuestions}>
            {visible(titleOf(ask))}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Where they are answered: at the end of the conversation. */
function showQuestions(): void {
  document.querySelector<HTMLDialogElement>("dialog[open]")?.close();
  const questions = document.querySelector(".messages .questions");
  questions?.scrollIntoView({ block: "nearest" });
  questions?.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
}

const MARKS: Readonly<Record<string, readonly [mark: string, word: string]>> = {
  pending: ["○", "To do"],
  in_progress: ["◐", "In progress"],
  done: ["✓", "Done"],
};

function Todos({ todos }: { todos: readonly Todo[] }) {
  if (todos.length === 0) return <Empty>No plan yet. What the agent plans to do appears here.</Empty>;
  return (
    <ul class="todos">
      {todos.map(({ id, title, status }) => {
        const [mark, word] = MARKS[status] ?? ["○", status];
        return (
          <li key={id} class={status}>
            <span class="mark" role="img" aria-label={word}>
              {mark}
            </span>
            <span>{visible(title)}</span>
          </li>
        );
      })}
    </ul>
  );
}
