// Derives a run's phase from its events alone, so front ends can do the same with the stream.

import type { StreamEvent } from "./event.ts";
import type { Interrupt } from "./interrupt.ts";
import { readSpans, type SpanHandlers } from "./span-reader.ts";

export type PhaseName =
  /** The run has not begun, or has ended. */
  | "idle"
  /** The run prepares a step or waits before a retry. */
  | "processing"
  | "calling_model"
  | "executing_tool"
  | "waiting_for_subagent"
  /** The run waits for an approval, a user's answer, or a client tool's result. */
  | "waiting_for_permission"
  | "waiting_for_answer"
  | "waiting_for_tool";

export interface Phase {
  readonly name: PhaseName;
  /** The running or waiting tools, or the subagents. Sorted, without duplicates. */
  readonly of?: string[];
}

/** Returns the phase after these events of one run. You can pass all of its events or only the most recent ones. */
export function phaseOf(events: Iterable<StreamEvent>): Phase {
  const track = trackPhase();
  let phase: Phase = { name: "idle" };
  for (const event of events) phase = track(event);
  return phase;
}

/**
 * Returns a function to call with each event of a run, which returns the phase after that event. An event with a `path`
 * shows only that its subagent is working.
 */
export function trackPhase(): (event: StreamEvent) => Phase {
  const open: Open = {
    isAtWork: false,
    isSpeaking: false,
    tools: new Map(),
    subagents: new Map(),
    asked: new Map(),
  };
  const spans = readSpans(handlersOf(open));
  return (event) => {
    open.isAtWork = event.event !== "done" && event.event !== "error";
    const [speaker] = event.path ?? [];
    if (speaker === undefined) {
      spans.see(event);
      see(event, open);
    }
    // The subagent's start may be older than the first event read.
    else if (!open.subagents.has(speaker)) open.subagents.set(speaker, { name: speaker });
    return phaseIn(open);
  };
}

/** The steps that have begun but not ended, by id. */
interface Open {
  isAtWork: boolean;
  isSpeaking: boolean;
  readonly tools: Map<string, string>;
  readonly subagents: Map<string, { readonly name: string; readonly call_id?: string }>;
  readonly asked: Map<string, Pick<Interrupt, "kind" | "call_id" | "name">>;
}

/** A progress event reopens its span, because the span may have started before the first event read. */
function handlersOf(open: Open): SpanHandlers<unknown> {
  const { tools, subagents } = open;
  const speak = () => {
    open.isSpeaking = true;
  };
  const fallSilent = () => {
    open.isSpeaking = false;
  };
  return {
    model: { opened: speak, progress: speak, closed: fallSilent, discarded: fallSilent },
    tool: {
      opened: ({ id, start }) => tools.set(id, start.name),
      progress: ({ name, data }) => tools.set(data.call_id, name),
      closed: ({ data }) => tools.delete(data.call_id),
    },
    subagent: {
      opened: ({ id, start }) => subagents.set(id, start.data),
      closed: ({ data }) => subagents.delete(data.id),
    },
  };
}

function see(event: StreamEvent, open: Open): void {
  switch (event.event) {
    case "on_interrupt":
      open.asked.set(event.data.id, event.data);
      return;
    case "on_resume":
      open.asked.delete(event.data.id);
      return;
    case "run_resumed":
    case "error":
      forget(open);
      return;
    case "done":
      // An interrupted run still waits for its answers.
      if (event.data.status !== "interrupted") forget(open);
  }
}

function forget(open: Open): void {
  open.isSpeaking = false;
  for (const each of [open.tools, open.subagents, open.asked]) each.clear();
}

const WAITS = {
  approval: "waiting_for_permission",
  question: "waiting_for_answer",
  tool: "waiting_for_tool",
  connect: "waiting_for_permission",
} as const;

/** The run's own work takes precedence over work that it waits for. */
function phaseIn({ isAtWork, isSpeaking, tools, subagents, asked }: Open): Phase {
  if (isSpeaking) return { name: "calling_model" };
  const delegations = new Set([...subagents.values()].map(({ call_id }) => call_id));
  const own = [...tools].filter(([id]) => !delegations.has(id)).map(([, name]) => name);
  if (own.length > 0) return named("executing_tool", own);
  if (subagents.size > 0) return named("waiting_for_subagent", namesOf(subagents));
  const [first] = asked.values();
  if (first) return named(WAITS[first.kind], namesOf(asked));
  return { name: isAtWork ? "processing" : "idle" };
}

const namesOf = (open: ReadonlyMap<string, { readonly name: string }>) =>
  [...open.values()].map(({ name }) => name);

const named = (name: PhaseName, of: readonly string[]): Phase => ({ name, of: [...new Set(of)].sort() });
