// Folds events into the thread that a page shows. The history of a thread is read as events too, so the page draws
// history and live events in the same way. This module is independent of views and of the network.

import type { EventData } from "../protocol/event.ts";
import type { ThreadView, Todo } from "./cells.ts";
import { createLane, type KnownAgent, type LaneFold } from "./lane.ts";
import { endOf, type Note } from "./notes.ts";
import type { Ending } from "./outcome.ts";
import { type Phase, trackPhase } from "./phase.ts";
import type { Interrupt, Run, StreamEvent, ThreadState, Usage } from "./wire.ts";

export interface FoldOptions {
  /** Called with every object that has changed. */
  readonly touch: (what: object) => void;
  /** Returns the time in milliseconds. Defaults to `Date.now`. */
  readonly now?: () => number;
}

export interface History {
  readonly state: ThreadState;
  /** The most recent run, whose end the page shows. */
  readonly run?: Run | undefined;
}

export interface Fold {
  readonly page: ThreadView;
  apply(event: StreamEvent): void;
  /**
   * Starts over with the thread that the server returned. Replayed events that the thread already covers change
   * nothing.
   */
  begin(history: History): void;
}

export function createFold({ touch, now = Date.now }: FoldOptions): Fold {
  const page: ThreadView = {
    lane: { cells: [] },
    run: { isActive: false, phase: { name: "idle" }, tokens: 0 },
    todos: [],
    asks: [],
  };
  const tools = { touch, now, newKey: counter() };
  let root = createLane(page.lane, tools);
  /** The lanes of subagents, by path. */
  const below = new Map<string, LaneFold>();
  const interrupts = new Map<string, Interrupt & { answer?: unknown }>();
  let track = trackPhase();
  /** True if a model call has ended but its message has not arrived. If the run then ends, the model wrote nothing. */
  let isSilent = false;

  const laneAt = (path: readonly string[]) => (path.length === 0 ? root : below.get(keyOf(path)));

  function apply(event: StreamEvent) {
    const path = ("path" in event && event.path) || [];
    const lane = laneAt(path);
    if (path.length === 0) ofRun(event);
    // This fold missed the start of the subagent, so it knows only the subagent's card.
    if (!lane) return;
    switch (event.event) {
      case "on_state":
        return onState(lane, path, event.data);
      case "on_subagent_start":
        return onSubagentStart(lane, path, event);
      case "on_subagent_end":
        return onSubagentEnd(lane, event);
      default:
        // The call's arguments already show the subagent's task.
        if (path.length > 0 && event.event === "on_message" && event.data.message.role === "user") return;
        if (event.event === "on_chat_model_end") count(event.data.usage);
        lane.apply(event);
    }
  }

  /** Applies the event to the run as a whole. */
  function ofRun(event: StreamEvent): void {
    const { run } = page;
    if (event.event === "run_start") {
      track = trackPhase();
      const { agent, model } = event.data;
      Object.assign(run, { agent, model, isActive: true, tokens: 0, ending: undefined });
      if (event.run_id !== undefined) run.id = event.run_id;
      if (event.data.replaces !== undefined) root.cut(event.data.replaces);
      root.removeNotes();
    }
    if (event.event === "on_chat_model_end") isSilent = event.data.error === undefined;
    if (event.event === "run_start" || event.event === "on_message" || event.event === "on_tool_end")
      isSilent = false;
    run.phase = track(event);
    if (event.event === "done" || event.event === "error") {
      run.isActive = false;
      const isWaiting = event.event === "done" && event.data.status === "interrupted";
      root.settle(isWaiting ? "waits" : "stopped");
      for (const lane of below.values()) lane.settle("stopped");
      if (event.data.usage) run.tokens = total(event.data.usage);
      run.ending = endingOf(event);
      note(endOf(run.ending, event.event === "error" ? event.data : undefined));
    }
    if (event.event === "warning") {
      const { code: reason, message: text } = event.data;
      // The most recent warning contains the number of the attempt.
      if (reason === "model_retry") root.removeNotes(reason);
      note({ text, tone: "warning", reason });
    }
    touch(run);
  }

  function endingOf(event: Extract<StreamEvent, { event: "done" | "error" }>): Ending {
    if (event.event === "error") return { status: "error", stop_reason: "error" };
    const { status, stop_reason, message, details } = event.data;
    return { status, stop_reason, message, details, isEmpty: isSilent && stop_reason !== "refusal" };
  }

  function note(said: Note | undefined): void {
    if (said) root.note(said);
  }

  function count(usage: Usage | undefined): void {
    if (!usage) return;
    page.run.tokens += total(usage);
    touch(page.run);
  }

  function onState(lane: LaneFold, path: readonly string[], change: StateChange): void {
    if (change.key === "subagents")
      for (const [thread, known] of Object.entries(change.value ?? change.patch ?? {}))
        if (known) lane.agent(thread, known as KnownAgent);
    if (path.length > 0) return;
    if (change.key === "todos") page.todos = todosIn(change.value);
    else if (change.key === "interrupts") {
      if (!change.patch) interrupts.clear();
      for (const [id, ask] of Object.entries(change.patch ?? change.value ?? {}))
        if (ask) interrupts.set(id, ask as Interrupt);
        else interrupts.delete(id);
      page.asks = [...interrupts.values()].filter(({ answer }) => !answer);
    } else return;
    touch(page);
  }

  function onSubagentStart(
    lane: LaneFold,
    path: readonly string[],
    { data, ts }: Extract<StreamEvent, { event: "on_subagent_start" }>,
  ): void {
    const key = keyOf([...path, data.id]);
    const cell = lane.agent(data.thread_id, { ...data, status: "running" });
    // The server replays the subagent's events from the first one, so the earlier copy is discarded. A later run of the
    // subagent is appended to the same lane.
    const isRepeat = cell.run === data.run_id;
    cell.run = data.run_id;
    if (ts !== undefined) cell.began = ts;
    delete cell.ms;
    touch(cell);
    if (!isRepeat && below.get(key)?.lane === cell.lane) return;
    for (const other of below.keys()) if (other.startsWith(`${key}/`)) below.delete(other);
    cell.lane.cells.length = 0;
    touch(cell.lane);
    below.set(key, createLane(cell.lane, tools));
  }

  function onSubagentEnd(
    lane: LaneFold,
    { data, ts }: Extract<StreamEvent, { event: "on_subagent_end" }>,
  ): void {
    const cell = lane.agentOf(data.id);
    if (!cell) return;
    cell.status = data.status;
    if (data.summary) cell.summary = data.summary;
    if (data.usage) cell.usage = data.usage;
    if (ts !== undefined && cell.began !== undefined) cell.ms = Date.parse(ts) - Date.parse(cell.began);
    touch(cell);
  }

  function begin({ state, run }: History): void {
    page.lane.cells.length = 0;
    below.clear();
    interrupts.clear();
    root = createLane(page.lane, tools);
    Object.assign(page, { todos: todosIn(state.todos), asks: [] });
    const isActive = state.status === "busy";
    const phase: Phase = { name: isActive ? "processing" : "idle" };
    const model = state.messages.findLast((message) => message.role === "assistant")?.model;
    const isEmpty = state.messages.at(-1)?.role === "user" ? undefined : false;
    const ending = isActive ? undefined : run && { ...run, isEmpty };
    Object.assign(page.run, { id: run?.id, agent: run?.agent, model, isActive, ending, phase, tokens: 0 });
    track = trackPhase();
    isSilent = false;
    for (const message of state.messages) root.message(message);
    for (const key of ["interrupts", "subagents"])
      onState(root, [], { key, value: (state[key] ?? {}) as Record<string, unknown> });
    for (const { call_id } of interrupts.values()) root.waits(call_id);
    if (!isActive) {
      root.settle("waits");
      if (ending) note(endOf(ending, run?.error));
    }
    for (const changed of [page, page.run, page.lane]) touch(changed);
  }

  return { page, apply, begin };
}

type StateChange = EventData<"on_state">;

const keyOf = (path: readonly string[]) => path.join("/");

const total = ({ input_tokens, output_tokens }: Usage) => input_tokens + output_tokens;

const todosIn = (value: unknown): readonly Todo[] => (Array.isArray(value) ? (value as Todo[]) : []);

function counter(): () => string {
  let count = 0;
  return () => `c${count++}`;
}
