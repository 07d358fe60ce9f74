// Shows a tool call, or a subagent that works on a call, as a line that expands.

import type { VNode } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import {
  type AgentCell,
  type CellState,
  type Lane,
  lastOf,
  shown,
  type ToolCell,
} from "../../client/cells.ts";
import { createFold } from "../../client/fold.ts";
import { badEndOf, tasksOf, wholeOutputIn, wordsOf } from "../call-words.ts";
import { Action, Copy, Plain, Pre, Problem, useRead, visible } from "../components.tsx";
import { Foldable } from "../foldable.tsx";
import { touch, useTouched } from "../frame.ts";
import { lazy } from "../lazy.tsx";
import { wordsOf as wordsOfMarkdown } from "../markdown-words.ts";
import { compact, duration, number } from "../numbers.ts";
import { openSpan } from "../open-span.ts";
import { hashOf } from "../routes.ts";
import { client } from "../session.ts";
import type { Texts } from "../texts/en.ts";
import { t } from "../texts.ts";
import { textOf } from "../transcript.ts";
import { download } from "./download.ts";
import { ThreadOf } from "./thread-of.ts";

type Look = CellState | "odd" | "denied";

const MARKS: Readonly<Record<Look, string>> = {
  open: "●",
  done: "✓",
  /** A command that ended with an error. */
  odd: "!",
  failed: "✗",
  denied: "⊘",
  waits: "◔",
  stopped: "■",
};

const ThreadFile = lazy(async () => (await import("./files.tsx")).ThreadFile);

/** The number of characters to show from the end of a text that is still growing. */
const LIVE_CHARACTERS = 10_000;

const Mark = ({ state }: { state: Look }) => (
  <span class="mark" aria-hidden="true">
    {MARKS[state]}
  </span>
);

/** Renders the messages and calls of a subagent. */
type DrawLane = (lane: Lane) => VNode;

export function ToolCard({ cell, drawLane }: { cell: ToolCell; drawLane: DrawLane }) {
  const { state, name, args, at, ms, agents, writing, output } = useTouched(cell);
  const { thread } = useContext(ThreadOf);
  const [choice, setChoice] = useState<boolean>();
  const isGrowing = state === "open";
  const written = isGrowing ? lastOf(writing, LIVE_CHARACTERS) : "";
  const text = isGrowing
    ? lastOf(output, LIVE_CHARACTERS)
    : cell.isWithdrawn
      ? t().calls.withdrawn
      : shown(output, (missing) => t().calls.gap(number(missing)));
  const badEnd = useMemo(
    () => (state === "done" ? badEndOf(name, text, t().calls) : undefined),
    [name, state, text],
  );
  const isDenied = cell.isDenied === true && (state === "failed" || state === "done");
  // A call that has returned is done, even if it reports a failure.
  const isInVain =
    state === "done" && agents.length > 0 && agents.every(({ status }) => STATES[status] === "failed");
  const look = isDenied ? "denied" : badEnd === undefined && !isInVain ? state : "odd";
  const isOpen = choice ?? (state === "failed" || badEnd !== undefined || (isGrowing && text !== ""));
  const answer = name === "ask_user" && state === "done" && !isDenied ? text : undefined;
  const time =
    ms === undefined || state !== "done" || isDenied || answer !== undefined ? undefined : duration(ms);
  const bad = isInVain ? wordOf("failed") : badEnd;
  const end = [bad, time].filter(Boolean).join(" · ") || wordOf(isDenied ? deniedAs(name) : state);
  const tasks = tasksOf(args);
  return (
    <div class={`card ${look}`} data-message={cell.call}>
      <Foldable
        class="call"
        isOpen={isOpen}
        onToggle={setChoice}
        line={
          <>
            <Mark state={look} />
            <Line cell={cell} written={written} answer={answer} />
            <span class="much">{end}</span>
          </>
        }
      >
        <div class="inside">
          {args ? <Arguments args={args} /> : written && <Pre atEnd>{visible(written)}</Pre>}
          {text !== "" && <Output cell={cell} text={text} />}
          {thread !== "" && at !== undefined && (
            <p class="row">
              <Action class="quiet" onClick={() => openSpan(thread, cell.call, at)}>
                {t().messages.trace}
              </Action>
            </p>
          )}
        </div>
      </Foldable>
      {agents.map((agent, index) => {
        const earlier = agents.slice(0, index).filter((each) => each.agent === agent.agent).length;
        const { task } = tasks.filter((each) => each.agent === agent.agent)[earlier] ?? {};
        return <AgentCard key={agent.key} cell={agent} task={task} drawLane={drawLane} />;
      })}
    </div>
  );
}

const wordOf = (state: keyof Texts["calls"]["states"]): string => t().calls.states[state];

/** A denied question is shown as unanswered, because a user does not allow or deny a question. */
const deniedAs = (tool: string) => (tool === "ask_user" ? "unanswered" : "denied");

interface LineProps {
  readonly cell: ToolCell;
  readonly written: string;
  /** The user's answer to the question of this call. */
  readonly answer: string | undefined;
}

/** Describes the call: in words for a built-in tool, otherwise by its name and its most descriptive argument. */
function Line({ cell: { name, args, state }, written, answer }: LineProps) {
  const words = useMemo(() => wordsOf({ name, args, state }, t().calls), [name, args, state]);
  if (!words)
    return (
      <>
        <b>
          <Plain>{name}</Plain>
        </b>
        <code class="line">{args ? lineOf(args) : visible(written.slice(-120))}</code>
      </>
    );
  const { verb, object, rest } = words;
  return (
    <>
      <b title={name}>{verb}</b>
      {object !== undefined && <code class="line fits">{oneLine(object)}</code>}
      {answer === undefined ? (
        <span class="line rest">{rest}</span>
      ) : (
        <bdi class="line told">{oneLine(answer)}</bdi>
      )}
    </>
  );
}

const Arguments = ({ args }: { args: Readonly<Record<string, unknown>> }) => (
  <dl class="arguments">
    {entriesOf(args).map(([name, text]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>
          <Pre>{text}</Pre>
        </dd>
      </div>
    ))}
  </dl>
);

function Output({ cell, text }: { cell: ToolCell; text: string }) {
  const { thread } = useContext(ThreadOf);
  const [isShown, setShown] = useState(false);
  const words = t().calls;
  const path = cell.state === "open" ? undefined : wholeOutputIn(text);
  const saveAll = async () => {
    const { messages } = await client.threads.state(thread);
    const whole = messages.find((message) => message.role === "tool" && message.tool_call_id === cell.call);
    if (!whole) throw new Error(words.gone);
    download(new Blob([textOf(whole.content)], { type: "text/plain" }), `${cell.name}.txt`);
  };
  return (
    <section class="output">
      <header>
        <span>{cell.isDenied ? words.reason : cell.state === "failed" ? words.error : words.output}</span>
        <Copy text={() => text} />
        {cell.state !== "open" && cell.output.dropped > 0 && (
          <Action class="quiet" onClick={saveAll}>
            {words.downloadAll}
          </Action>
        )}
        {path !== undefined && (
          <button type="button" class="quiet" onClick={() => setShown(true)}>
            {words.openWhole(path)}
          </button>
        )}
      </header>
      <Pre atEnd={cell.state === "open"}>{visible(text)}</Pre>
      {path !== undefined && isShown && (
        <ThreadFile thread={thread} path={path} onClose={() => setShown(false)} />
      )}
    </section>
  );
}

const STATES: Readonly<Record<string, CellState>> = {
  running: "open",
  completed: "done",
  failed: "failed",
  interrupted: "waits",
  cancelled: "stopped",
};

interface AgentCardProps {
  readonly cell: AgentCell;
  /** The subagent's task, if it is known. */
  readonly task?: string | undefined;
  readonly drawLane: DrawLane;
}

export function AgentCard({ cell, task, drawLane }: AgentCardProps) {
  const { name, agent, status, summary, usage, ms, lane, thread } = useTouched(cell);
  const [isOpen, setOpen] = useState(false);
  const words = t().calls;
  // The messages belong to another thread and are read-only here.
  const child = useMemo(() => ({ thread, agent: name }), [thread, name]);
  const state = STATES[status] ?? "stopped";
  const said = summary || task;
  const line = useMemo(() => oneLine(said ? wordsOfMarkdown(said) : agent), [said, agent]);
  const tokens = usage && usage.input_tokens + usage.output_tokens;
  return (
    <Foldable
      class={`agent ${state}`}
      isOpen={isOpen}
      onToggle={setOpen}
      line={
        <>
          <Mark state={state} />
          <b>
            <Plain>{name}</Plain>
          </b>
          <span class="line">{line}</span>
          <span class="much">
            {[
              words.statuses[status] ?? status,
              tokens && words.tokens(compact(tokens)),
              ms !== undefined && duration(ms),
            ]
              .filter(Boolean)
              .join(" · ")}
          </span>
        </>
      }
    >
      <div class="inside">
        <a href={hashOf({ view: "thread", thread })}>{words.openConversation}</a>
        <ThreadOf.Provider value={child}>
          {lane.cells.length === 0 && status !== "running" ? (
            <ChildHistory thread={thread} drawLane={drawLane} />
          ) : (
            drawLane(lane)
          )}
        </ThreadOf.Provider>
      </div>
    </Foldable>
  );
}

/** Reads the messages of a subagent that ran before the page was opened. */
function ChildHistory({ thread, drawLane }: { thread: string; drawLane: DrawLane }) {
  const { value: lane, problem } = useRead(
    async (signal) => {
      const { page, begin } = createFold({ touch });
      begin({ state: await client.threads.state(thread, signal) });
      return page.lane;
    },
    [thread],
  );
  if (problem) return <Problem>{problem}</Problem>;
  return lane ? drawLane(lane) : <p class="empty">{t().calls.reading}</p>;
}

type Args = Readonly<Record<string, unknown>>;

/** The arguments that describe a call best, in order of preference. */
const TELLING = ["command", "path", "file_path", "url", "query", "pattern", "question", "task", "name"];
const LONGEST_LINE = 200;

/** Returns one line, for the header of a card. */
function lineOf(args: Args | undefined): string {
  if (!args) return "";
  const name = TELLING.find((each) => typeof args[each] === "string");
  const text = name ? String(args[name]) : Object.keys(args).length === 0 ? "" : JSON.stringify(args);
  return oneLine(text);
}

const oneLine = (text: string): string =>
  visible(text.slice(0, LONGEST_LINE).replace(/\s+/g, " ")) + (text.length > LONGEST_LINE ? "…" : "");

/** Returns the arguments by name: strings unchanged, and all other values as JSON. */
const entriesOf = (args: Args): readonly (readonly [name: string, text: string])[] =>
  Object.entries(args).map(([name, value]) => [
    visible(name),
    visible(typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  ]);
