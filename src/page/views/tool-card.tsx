// A tool call, and a subagent that works for one: a line that can be opened.

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
import { Action, Copy, Foldable, Plain, Pre, Problem, useRead, visible } from "../components.tsx";
import { touch, useTouched } from "../frame.ts";
import { compact, duration } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { client } from "../session.ts";
import { textOf } from "../transcript.ts";
import { download } from "./download.ts";
import { ThreadOf } from "./thread-of.ts";

const MARKS: Readonly<Record<CellState, readonly [mark: string, word: string]>> = {
  open: ["●", "running"],
  done: ["✓", "done"],
  failed: ["✗", "failed"],
  waits: ["◔", "waits"],
  stopped: ["■", "stopped"],
};

/** Of what is still growing, the end is shown. */
const LIVE_CHARACTERS = 10_000;

const Mark = ({ state }: { state: CellState }) => (
  <span class="mark" aria-hidden="true">
    {MARKS[state][0]}
  </span>
);

/** Draws what a subagent does. */
type DrawLane = (lane: Lane) => VNode;

export function ToolCard({ cell, drawLane }: { cell: ToolCell; drawLane: DrawLane }) {
  const { state, name, args, ms, agents, writing, output } = useTouched(cell);
  const [choice, setChoice] = useState<boolean>();
  const isGrowing = state === "open";
  const written = isGrowing ? lastOf(writing, LIVE_CHARACTERS) : "";
  const text = isGrowing ? lastOf(output, LIVE_CHARACTERS) : shown(output);
  const isOpen = choice ?? (state === "failed" || (isGrowing && text !== ""));
  return (
    <div class={`card ${state}`}>
      <Foldable
        class="call"
        isOpen={isOpen}
        onToggle={setChoice}
        line={
          <>
            <Mark state={state} />
            <b>
              <Plain>{name}</Plain>
            </b>
            <code class="line">{args ? lineOf(args) : visible(written.slice(-120))}</code>
            <span class="much">{ms === undefined || state !== "done" ? MARKS[state][1] : duration(ms)}</span>
          </>
        }
      >
        <div class="inside">
          {args ? <Arguments args={args} /> : written && <Pre atEnd>{visible(written)}</Pre>}
          {text !== "" && <Output cell={cell} text={text} />}
        </div>
      </Foldable>
      {agents.map((agent) => (
        <AgentCard key={agent.key} cell={agent} drawLane={drawLane} />
      ))}
    </div>
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
  const saveAll = async () => {
    const { messages } = await client.threads.state(thread);
    const whole = messages.find((message) => message.role === "tool" && message.tool_call_id === cell.call);
    if (!whole) throw new Error("The output is no longer in the conversation.");
    download(new Blob([textOf(whole.content)], { type: "text/plain" }), `${cell.name}.txt`);
  };
  return (
    <section class="output">
      <header>
        <span>{cell.state === "failed" ? "Error" : "Output"}</span>
        <Copy text={() => text} />
        {cell.state !== "open" && cell.output.dropped > 0 && (
          <Action class="quiet" onClick={saveAll}>
            Download all of it
          </Action>
        )}
      </header>
      <Pre atEnd={cell.state === "open"}>{visible(text)}</Pre>
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

export function AgentCard({ cell, drawLane }: { cell: AgentCell; drawLane: DrawLane }) {
  const { name, agent, status, summary, usage, ms, lane, thread } = useTouched(cell);
  const [isOpen, setOpen] = useState(false);
  // Its messages are those of another thread: they are only read here.
  const child = useMemo(() => ({ thread, agent: name }), [thread, name]);
  const state = STATES[status] ?? "stopped";
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
          <span class="line">{visible(summary || agent)}</span>
          <span class="much">
            {[status, tokens && `${compact(tokens)} tokens`, ms !== undefined && duration(ms)]
              .filter(Boolean)
              .join(" · ")}
          </span>
        </>
      }
    >
      <div class="inside">
        <a href={hashOf({ view: "thread", thread })}>Open its conversation</a>
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

/** For a subagent that ran before the page was opened. */
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
  return lane ? drawLane(lane) : <p class="empty">Reading…</p>;
}

type Args = Readonly<Record<string, unknown>>;

/** What says most about a call, when it has it. */
const TELLING = ["command", "path", "file_path", "url", "query", "pattern", "question", "task", "name"];
const LONGEST_LINE = 200;

/** One line, for the head of a card. */
function lineOf(args: Args | undefined): string {
  if (!args) return "";
  const name = TELLING.find((each) => typeof args[each] === "string");
  const text = name ? String(args[name]) : Object.keys(args).length === 0 ? "" : JSON.stringify(args);
  return visible(text.slice(0, LONGEST_LINE).replace(/\s+/g, " ")) + (text.length > LONGEST_LINE ? "…" : "");
}

/** By name; a text as it is, everything else as JSON. */
const entriesOf = (args: Args): readonly (readonly [name: string, text: string])[] =>
  Object.entries(args).map(([name, value]) => [
    visible(name),
    visible(typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  ]);
