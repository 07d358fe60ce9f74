// Derives what happened in a turn from its events: the agent's work, its questions and their answers, changes to the
// shared state, and how each run ended. A wire is a table of handlers for these parts.

import { type AgentHandlers, type HandlerResult, joined, readAgent } from "./agent-reader.ts";
import { type End, endOf } from "./end.ts";
import type { EventData, StreamEvent } from "./event.ts";
import type { Interrupt } from "./interrupt.ts";
import { openQuestions } from "./open-questions.ts";
import { merge } from "./patch.ts";

/** How `files` changed: a patch of some paths, or all files. */
export interface FilesChange {
  readonly before: unknown;
  readonly patch: Readonly<Record<string, unknown>> | undefined;
}

/** `R` is the type of a run's record, which accompanies its events. */
export interface TurnHandlers<F, R> extends AgentHandlers<F> {
  /** The first run of the turn begins. */
  start(run: R): HandlerResult<F>;
  /** A run of the turn begins. Also called for the first run. */
  run(run: R, data: EventData<"run_start">): HandlerResult<F>;
  /** `isKnown` is true if the reader has already seen the question. */
  ask(question: Interrupt, isKnown: boolean): HandlerResult<F>;
  /** `question` is undefined if the reader has not seen it. */
  answered(data: EventData<"on_resume">, question: Interrupt | undefined): HandlerResult<F>;
  todos(value: unknown): HandlerResult<F>;
  files(value: unknown, change: FilesChange): HandlerResult<F>;
  /** An event of a subagent, or its start or end. `path` identifies the agent that emitted the event. */
  subagent(event: StreamEvent, path: readonly string[], run: R): HandlerResult<F>;
  /** A run of the turn has ended. The turn continues if the end is `asks` or `waits`. */
  end(end: End, run: R): HandlerResult<F>;
}

export interface TurnOptions {
  /** The questions of earlier runs that the reader has seen. */
  readonly asked?: readonly Interrupt[] | undefined;
  /** The thread's files before the first event. */
  readonly files?: unknown;
}

const NOTHING: readonly never[] = [];
const AT_ROOT: readonly string[] = [];

/**
 * Returns a function to call with each event of the turn, in order, together with its run. The function returns the
 * frames of the handlers.
 */
export function readTurn<F, R = unknown>(
  on: Partial<TurnHandlers<F, R>>,
  options: TurnOptions = {},
): (event: StreamEvent, run: R) => readonly F[] {
  const agent = readAgent(on);
  /** All questions asked so far, and the open questions among them. */
  const asked = new Map(options.asked?.map((each) => [each.id, each]));
  const open = openQuestions();
  let { files } = options;
  let isStarted = false;

  const begin = (data: EventData<"run_start">, run: R): readonly F[] => {
    open.clear();
    const started = isStarted ? NOTHING : on.start?.(run);
    isStarted = true;
    return joined(started, on.run?.(run, data));
  };

  const ask = (question: Interrupt): HandlerResult<F> => {
    const isKnown = asked.has(question.id);
    asked.set(question.id, question);
    open.ask(question);
    return on.ask?.(question, isKnown);
  };

  const answer = (data: EventData<"on_resume">): HandlerResult<F> => {
    open.answer(data.id);
    return on.answered?.(data, asked.get(data.id));
  };

  const change = ({ key, value, patch }: EventData<"on_state">): HandlerResult<F> => {
    if (key === "todos") return on.todos?.(value);
    if (key !== "files") return NOTHING;
    const before = files;
    files = patch ? merge(before, patch) : value;
    return on.files?.(files, { before, patch });
  };

  const see = (event: StreamEvent, run: R): HandlerResult<F> => {
    switch (event.event) {
      case "run_start":
        return begin(event.data, run);
      case "on_interrupt":
        return ask(event.data);
      case "on_resume":
        return answer(event.data);
      case "on_state":
        return change(event.data);
      case "on_subagent_start":
      case "on_subagent_end":
        return on.subagent?.(event, AT_ROOT, run);
      case "on_message":
        open.settle(event.data.message);
        return agent.see(event);
      case "done":
      case "error":
        return joined(agent.close(), on.end?.(endOf(event, open.list()), run));
      default:
        return agent.see(event);
    }
  };
  return (event, run) => {
    const isOfSubagent = event.path !== undefined && event.path.length > 0;
    return (isOfSubagent ? on.subagent?.(event, event.path ?? AT_ROOT, run) : see(event, run)) ?? NOTHING;
  };
}
