// The side panel of a conversation: todos, questions, files and the trace.

import type { ThreadView, Todo } from "../../client/cells.ts";
import { Empty, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { lazy } from "../lazy.tsx";
import { go } from "../routes.ts";
import { Tabs } from "../tabs.tsx";
import { t } from "../texts.ts";
import { titleOf } from "./question.tsx";

const Files = lazy(async () => (await import("./files.tsx")).Files);
const RawEvents = lazy(async () => (await import("./events.tsx")).RawEvents);
const Trace = lazy(async () => (await import("./trace.tsx")).Trace);

export interface SideProps {
  readonly thread: string;
  readonly page: ThreadView;
  /** The run in the URL. Defaults to the most recent run. */
  readonly run: string | undefined;
  readonly tab: string | undefined;
}

export function Side({ thread, page, run: given, tab = "todos" }: SideProps) {
  const { todos, asks } = useTouched(page);
  const newest = useTouched(page.run).id;
  const run = given ?? newest;
  const words = t().side;
  const done = todos.filter(({ status }) => status === "done").length;
  return (
    <Tabs
      label={words.details}
      current={tab}
      onChange={(name) => go({ view: "thread", thread, tab: name })}
      tabs={{
        todos: {
          title: todos.length > 0 ? `${words.todos} ${done}/${todos.length}` : words.todos,
          body: () => <Todos todos={todos} />,
        },
        questions: {
          title: asks.length > 0 ? `${words.questions} ${asks.length}` : words.questions,
          body: () => <Asking asks={asks} />,
        },
        files: { title: words.files, body: () => <Files thread={thread} live={page.run} /> },
        trace: {
          title: words.trace,
          body: () => (
            <Trace thread={thread} run={run} live={run === newest ? page.run : undefined} isBeside />
          ),
        },
        events: { title: words.events, body: () => <RawEvents thread={thread} run={run} /> },
      }}
    />
  );
}

function Asking({ asks }: Pick<ThreadView, "asks">) {
  if (asks.length === 0) return <Empty>{t().side.noQuestions}</Empty>;
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

/** Scrolls to the end of the conversation, where the questions are answered. */
function showQuestions(): void {
  document.querySelector<HTMLDialogElement>("dialog[open]")?.close();
  const questions = document.querySelector(".messages .questions");
  questions?.scrollIntoView({ block: "nearest" });
  questions?.querySelector<HTMLElement>("button:not(:disabled)")?.focus();
}

const MARKS: Readonly<Record<string, string>> = { pending: "○", in_progress: "◐", done: "✓" };

function Todos({ todos }: { todos: readonly Todo[] }) {
  if (todos.length === 0) return <Empty>{t().side.noTodos}</Empty>;
  const words: Readonly<Record<string, string>> = t().side.marks;
  return (
    <ul class="todos">
      {todos.map(({ id, title, status }) => (
        <li key={id} class={status}>
          <span class="mark" role="img" aria-label={words[status] ?? status}>
            {MARKS[status] ?? "○"}
          </span>
          <span>{visible(title)}</span>
        </li>
      ))}
    </ul>
  );
}
