// How a run ended, for readers of its last event; and that event, for writers.

import { type EndFacts, endText } from "./end-texts.ts";
import type { EventData, StreamEvent } from "./event.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Usage } from "./message.ts";
import { openQuestions } from "./open-questions.ts";

export interface End {
  /**
   * `asks`: `questions` wait for answers. `waits`: the turn continues when the result of a deferred call arrives. `limit` and
   * `failed`: it could not finish. `finished`: everything else, also a run that was stopped after a step.
   */
  readonly as: "finished" | "asks" | "waits" | "cancelled" | "limit" | "failed";
  readonly status: EventData<"done">["status"];
  /** The stop reason, or the code of the error. */
  readonly reason: string;
  /** A sentence about the end, for people; empty for an ordinary one. */
  readonly message: string;
  readonly usage: Usage | undefined;
  /** What the agent answered, as its `output_schema` has it. */
  readonly output: EventData<"done">["output"];
  /** The questions that are open, in the order in which they were asked. */
  readonly questions: readonly Interrupt[];
}

type LastEvent = Extract<StreamEvent, { event: "done" | "error" }>;

/** The last event of a run that has not failed, with a sentence where people need one. */
export function doneEvent(
  data: Omit<EventData<"done">, "message">,
  { isEmpty }: { readonly isEmpty?: boolean | undefined } = {},
): Extract<StreamEvent, { event: "done" }> {
  const message = endText({ ...data, isEmpty });
  return { event: "done", data: message === undefined ? data : { ...data, message } };
}

/** `questions`: those that are open when the event comes. */
export function endOf(event: LastEvent, questions: readonly Interrupt[]): End {
  if (event.event === "error") {
    const { code, message, usage } = event.data;
    return { as: "failed", status: "error", reason: code, message, usage, output: undefined, questions };
  }
  const { status, stop_reason: reason, usage, output, message = endText(event.data) ?? "" } = event.data;
  return {
    as: kindOfEnd(event.data, questions.length > 0),
    status,
    reason,
    message,
    usage,
    output,
    questions,
  };
}

/** `isAsking`: whether a question of the run is open. */
export function kindOfEnd(
  { status, stop_reason }: { readonly status: End["status"]; readonly stop_reason?: string | undefined },
  isAsking: boolean,
): Exclude<End["as"], "failed"> {
  if (status === "error") return "limit";
  if (status === "cancelled") return "cancelled";
  if (status === "success") return "finished";
  if (isAsking) return "asks";
  return stop_reason === "tool_use" ? "waits" : "finished";
}

interface Settled extends EndFacts {
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** Why a run whose record this is failed or reached a limit; undefined for other ends. */
export function failureOf(run: Settled): { readonly code: string; readonly message: string } | undefined {
  if (run.error) return { code: run.error.code, message: run.error.message };
  if (run.status !== "error") return undefined;
  return { code: run.stop_reason ?? "error", message: endText(run) ?? "" };
}

/**
 * Returns a function that is to be called with each event of a turn, in order; it returns how a run of the turn has ended, with
 * that run's last event.
 */
export function trackEnd(): (event: StreamEvent) => End | undefined {
  const open = openQuestions();
  return (event) => {
    if (event.path && event.path.length > 0) return undefined;
    switch (event.event) {
      case "run_start":
        open.clear();
        return undefined;
      case "on_interrupt":
        open.ask(event.data);
        return undefined;
      case "on_resume":
        open.answer(event.data.id);
        return undefined;
      case "on_message":
        open.settle(event.data.message);
        return undefined;
      case "done":
      case "error":
        return endOf(event, open.list());
      default:
        return undefined;
    }
  };
}
