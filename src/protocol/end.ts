// Describes how a run ended, for readers of its last event, and creates that event for writers.

import { type EndFacts, endText } from "./end-texts.ts";
import type { EventData, StreamEvent } from "./event.ts";
import type { Interrupt } from "./interrupt.ts";
import type { Usage } from "./message.ts";
import { openQuestions } from "./open-questions.ts";

export interface End {
  /**
   * `asks`: `questions` wait for answers. `waits`: the turn continues when the result of a deferred call arrives.
   * `limit` and `failed`: the run could not finish. `finished`: every other end, including a stop after a step.
   */
  readonly as: "finished" | "asks" | "waits" | "cancelled" | "limit" | "failed";
  readonly status: EventData<"done">["status"];
  /** The stop reason or the error code. */
  readonly reason: string;
  /** A sentence for people about the end. Empty if the run ended normally. */
  readonly message: string;
  readonly usage: Usage | undefined;
  /** The agent's answer in the form of its `output_schema`. */
  readonly output: EventData<"done">["output"];
  /** The open questions, in the order in which they were asked. */
  readonly questions: readonly Interrupt[];
}

type LastEvent = Extract<StreamEvent, { event: "done" | "error" }>;

/** Creates the last event of a run that did not fail, with a sentence if people need one. */
export function doneEvent(
  data: Omit<EventData<"done">, "message">,
  { isEmpty }: { readonly isEmpty?: boolean | undefined } = {},
): Extract<StreamEvent, { event: "done" }> {
  const message = endText({ ...data, isEmpty });
  return { event: "done", data: message === undefined ? data : { ...data, message } };
}

/** `questions` contains the questions that are open at the time of the event. */
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

/** `isAsking` is true if the run has an open question. */
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

interface EndedRun extends EndFacts {
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

/** Returns why a run failed or reached a limit, from its record. Returns undefined for other ends. */
export function failureOf(run: EndedRun): { readonly code: string; readonly message: string } | undefined {
  if (run.error) return { code: run.error.code, message: run.error.message };
  if (run.status !== "error") return undefined;
  return { code: run.stop_reason ?? "error", message: endText(run) ?? "" };
}

/**
 * Returns a function to call with each event of a turn, in order. For the last event of a run, the function returns how
 * the run ended.
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
