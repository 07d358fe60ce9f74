// Tells a story as the events that the loop, and a process that takes a run over, would write.

import { type AssistantMessage, NO_USAGE, type ToolCall } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { EventData, StreamEvent } from "../../../src/protocol/event.ts";
import { interruptedEnd, stillOpen } from "../../../src/protocol/open-spans.ts";
import { bookOf, callEvents, type OpenCall } from "./calls.ts";
import { AT, RUN, resultOf, written } from "./events.ts";
import type { CallValue, DecisionValue, DeltaValue, StepValue, StoryValue } from "./story.ts";

/** A run with its events. */
export interface ToldRun {
  readonly run: RunRecord;
  readonly events: readonly StreamEvent[];
}

const DONE_AS = {
  answer: "end_turn",
  ends_with_result: "end_turn",
  max_tokens: "max_tokens",
  refusal: "refusal",
  guardrail: "refusal",
} as const;

const userSays = (id: string, content: string) => written({ id, created_at: AT, role: "user", content });

const done = (status: EventData<"done">["status"], stop_reason: string, more: object = {}): StreamEvent => ({
  event: "done",
  data: { status, stop_reason, usage: NO_USAGE, ...more },
});

const CANCELLED = "Cancelled before it was run.";

export function tellTurn(story: StoryValue): ToldRun[] {
  const told: ToldRun[] = [];
  const book = bookOf();
  let waiting: readonly OpenCall[] = [];
  let position = 0;

  const tellRun = (run: RunRecord, decision?: DecisionValue): StreamEvent[] => {
    const events: StreamEvent[] = [];
    const write = (...more: readonly StreamEvent[]) => {
      for (const event of more) book.see(event);
      events.push(...more);
    };
    write({ event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } });
    if (told.length === 0) {
      if (story.hasLeft) write(resultOf({ id: "call_left", name: "where", args: {} }, "Late.", "Late."));
      write(userSays("msg_user", story.input));
    }
    const attempts = { last: 1 };
    book.begin(run, waiting, decision);
    let step: StepValue | undefined;
    for (;;) {
      if (waiting.length > 0) {
        waiting = dispatch(waiting, { step, book, write, events, attempts });
        if (waiting.length > 0) return [...events, done("interrupted", "tool_use")];
        if (step?.mail !== undefined) write(userSays(`mail_${position}`, step.mail));
      }
      step = story.steps[position];
      if (!step) break;
      waiting = modelCall(step, `${position++}`, write, attempts);
      if (waiting.length === 0) write(userSays(`mail_${position}`, step.mail ?? "More."));
    }
    return [...events, ...ending(story)];
  };

  const cancelWait = (): StreamEvent[] => [
    { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
    ...waiting.map(({ call }) => resultOf(call, CANCELLED, CANCELLED)),
    ...book.closed(waiting.map(({ call }) => call.id)),
    done("cancelled", "cancelled"),
  ];

  const add = (tell: (run: RunRecord) => StreamEvent[]) => {
    const before = told.at(-1)?.run.id;
    const run = { ...RUN, id: `run_${told.length + 1}`, ...(before ? { resumes: before } : {}) };
    told.push({ run, events: tell(run) });
  };
  add((run) => tellRun(run));
  for (const decision of story.decisions) if (waiting.length > 0) add((run) => tellRun(run, decision));
  if (waiting.length > 0 && story.isCancelled && book.asks()) add(cancelWait);
  return told;
}

type Write = (...events: readonly StreamEvent[]) => void;

const streamed = (data: EventData<"on_chat_model_stream">): StreamEvent => ({
  event: "on_chat_model_stream",
  data,
});
const started = (message_id: string, name = "m"): StreamEvent => ({
  ...{ event: "on_chat_model_start", name },
  data: { message_id, model: name },
});
const ended = (message_id: string, stop_reason: string, name = "m"): StreamEvent => ({
  ...{ event: "on_chat_model_end", name },
  data: { message_id, stop_reason, usage: NO_USAGE },
});
const failed = (message_id: string, error: { code: string; message: string }): StreamEvent => ({
  ...{ event: "on_chat_model_end", name: "m" },
  data: { message_id, error },
});

function messageOf(id: string, said: readonly DeltaValue[], more: Partial<AssistantMessage> = {}) {
  const thoughts = said.flatMap((delta) => ("reasoning_delta" in delta ? [delta.reasoning_delta] : []));
  return {
    ...{ id, created_at: AT, role: "assistant" as const, model: "m" },
    content: said.flatMap((delta) => ("delta" in delta ? [delta.delta] : [])).join(""),
    ...(thoughts.length > 0 ? { reasoning: [{ text: thoughts.join("") }] } : {}),
    ...more,
  };
}

/** One step's model call, with its failed attempts. Returns the calls that its message makes. */
function modelCall(
  { said, failures, warning, calls }: StepValue,
  id: string,
  write: Write,
  attempts: { last: number },
): OpenCall[] {
  if (warning) write({ event: "warning", data: { code: warning, message: "Look." } });
  for (const [index, failure] of failures.entries()) {
    const message_id = `msg_${id}_failed_${index}`;
    const opening = started(message_id);
    const call = { index: 0, id: `call_${id}_failed_${index}`, name: "read_file", args_delta: '{"in' };
    write(opening, ...failure.said.map(streamed), ...(failure.calls ? [streamed({ tool_call: call })] : []));
    if (failure.isCrash)
      write(
        { event: "run_resumed", data: { attempt: ++attempts.last } },
        ...stillOpen([opening]).map(interruptedEnd),
      );
    else
      write(failed(message_id, { code: "model_overloaded", message: "busy" }), {
        event: "warning",
        data: { code: "model_retry", message: "Retrying." },
      });
  }
  const message_id = `msg_${id}`;
  const made = calls.map((spec, index): OpenCall => ({ spec, call: madeBy(spec, `${id}_${index}`, index) }));
  write(
    started(message_id),
    ...said.map(streamed),
    ...made.flatMap(({ call: { id, name, args, malformed } }, index) => [
      streamed({ tool_call: { index, id, name, args_delta: "" } }),
      streamed({ tool_call: { index, args_delta: malformed ?? JSON.stringify(args) } }),
    ]),
    ended(message_id, made.length > 0 ? "tool_use" : "end_turn"),
  );
  const message = messageOf(
    message_id,
    said,
    made.length > 0 ? { tool_calls: made.map(({ call }) => call) } : {},
  );
  if (made.length > 0 || message.content.trim() !== "") write(written(message));
  return made;
}

const madeBy = ({ name, outcome }: CallValue, id: string, index: number): ToolCall =>
  outcome === "malformed"
    ? { id: `call_${id}`, name, args: {}, malformed: `{"index":${index}` }
    : { id: `call_${id}`, name, args: { index } };

interface Dispatch {
  /** The step that made the calls; undefined in a run that resumes them. */
  readonly step: StepValue | undefined;
  readonly book: ReturnType<typeof bookOf>;
  readonly write: Write;
  readonly events: readonly StreamEvent[];
  readonly attempts: { last: number };
}

/** Runs the calls at once. Returns those that wait. */
function dispatch(calls: readonly OpenCall[], about: Dispatch): OpenCall[] {
  const { step, book, write, events, attempts } = about;
  const strands = calls.map((each) => callEvents(each, book));
  const all = interleaved(strands, step?.picks ?? [0]);
  const crashAt = step?.crashAt;
  if (crashAt === undefined || crashAt >= all.length) {
    write(...all);
    return calls.filter(({ call }) => !hasResult(events, call));
  }
  const survived = all.slice(0, crashAt);
  write(...survived, { event: "run_resumed", data: { attempt: ++attempts.last } });
  write(...stillOpen(survived).toReversed().map(interruptedEnd));
  const left = calls.filter(({ call }) => !hasResult(events, call));
  return left.length === 0 ? [] : dispatch(left, { ...about, step: undefined });
}

const hasResult = (events: readonly StreamEvent[], { id }: ToolCall) =>
  events.some(
    ({ event, path, data }) =>
      event === "on_message" && !path && data.message.role === "tool" && data.message.tool_call_id === id,
  );

/** The first event of each, then by `picks`; each keeps its order. */
function interleaved(strands: readonly (readonly StreamEvent[])[], picks: readonly number[]): StreamEvent[] {
  const rest = strands.map(([, ...later]) => later).filter(({ length }) => length > 0);
  const all = strands.flatMap(([first]) => (first ? [first] : []));
  for (let turn = 0; rest.length > 0; turn++) {
    const at = (picks[turn % picks.length] ?? 0) % rest.length;
    const next = rest[at]?.shift();
    if (next) all.push(next);
    if (rest[at]?.length === 0) rest.splice(at, 1);
  }
  return all;
}

/** The last model call, if there is one, and the end of the run. */
function ending({ end: { as, said } }: StoryValue): StreamEvent[] {
  const id = "msg_last";
  switch (as) {
    case "cancelled":
      return [...cut(said, "stopped"), done("cancelled", "cancelled")];
    case "limit": {
      const details = { limit: "max_iterations", max: 25, message: "The agent made 25 model calls." };
      return [...cut(said, "failed"), done("error", "max_iterations", { details })];
    }
    case "error":
      return [
        ...cut(said, "failed"),
        { event: "error", data: { code: "internal", message: "It broke.", usage: NO_USAGE } },
      ];
    case "stopped":
      return [done("interrupted", "interrupt")];
    case "ends_with_result":
      return [done("success", "end_turn")];
    default: {
      const author = as === "guardrail" ? "guardrails/input" : "m";
      const message = messageOf(id, said, { model: author });
      const isEmpty = message.content.trim() === "";
      return [
        started(id, author),
        ...said.map(streamed),
        ended(id, DONE_AS[as], author),
        ...(isEmpty ? [] : [written(message)]),
        done("success", DONE_AS[as], isEmpty ? {} : { message_id: id }),
      ];
    }
  }
}

/** An answer that is cut off: what was said of it is kept. */
function cut(said: readonly DeltaValue[], incomplete: "stopped" | "failed"): StreamEvent[] {
  if (said.length === 0) return [];
  const id = "msg_cut";
  const message = messageOf(id, said, { incomplete });
  const { reasoning: _, ...kept } = message;
  const error = { code: "cancelled", message: "Cancelled before the model had finished." };
  return [
    started(id),
    ...said.map(streamed),
    failed(id, error),
    ...(kept.content.trim() === "" ? [] : [written(kept)]),
  ];
}
