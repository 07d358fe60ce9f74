// Legal runs of any shape: the events that the loop may emit, for properties of their readers.

import fc from "fast-check";
import { type Message, NO_USAGE, type ToolCall } from "../../src/core/message.ts";
import type { RunRecord } from "../../src/core/records.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";

const AT = "2026-01-01T00:00:00.000Z";

export const RUN: RunRecord = {
  ...{ id: "run_1", thread_id: "thread", agent: "assistant", status: "running", attempt: 1 },
  ...{ usage: NO_USAGE, metadata: {}, created_at: AT },
};

const text = fc.string({ minLength: 1, maxLength: 12 });
const name = fc.constantFrom("read_file", "task", "ask_user", "where");

const Delta = fc.oneof(
  text.map((delta) => ({ delta })),
  text.map((reasoning_delta) => ({ reasoning_delta })),
);
const Outcome = fc.constantFrom("result", "error", "approval", "question", "unstarted");
const Call = fc.record({
  name,
  outcome: Outcome,
  progress: fc.array(text, { maxLength: 2 }),
  child: fc.array(text, { maxLength: 2 }),
});
const Aside = fc.oneof(
  text.map((message): StreamEvent => ({ event: "warning", data: { code: "odd", message } })),
  fc.constant<StreamEvent>({
    event: "on_state",
    data: { key: "todos", value: [{ id: "1", title: "A", status: "done" }] },
  }),
  fc.constant<StreamEvent>({
    event: "on_state",
    data: { key: "files", patch: { a: { bytes: 1, op: "write" } } },
  }),
  fc.constant<StreamEvent>({ event: "on_state", data: { key: "interrupts", patch: {} } }),
);
const Step = fc.record({
  deltas: fc.array(Delta, { maxLength: 4 }),
  /** Attempts that fail before the one that counts. */
  failures: fc.array(fc.record({ deltas: fc.array(Delta, { maxLength: 2 }), isCrash: fc.boolean() }), {
    maxLength: 2,
  }),
  calls: fc.array(Call, { maxLength: 3 }),
  aside: fc.array(Aside, { maxLength: 2 }),
});
const End = fc.constantFrom("success", "cancelled", "limit", "error");

/** The events of one whole run. It ends interrupted if a call asks. */
export const arbitraryRun: fc.Arbitrary<StreamEvent[]> = fc
  .record({
    steps: fc.array(Step, { minLength: 1, maxLength: 3 }),
    end: End,
    input: text,
    cut: fc.option(fc.array(Delta, { minLength: 1, maxLength: 4 })),
  })
  .map(({ steps, end, input, cut }) => {
    const events: StreamEvent[] = [
      { event: "run_start", data: { agent: "assistant", model: "m", attempt: 1 } },
      written({ id: "msg_user", created_at: AT, role: "user", content: input }),
    ];
    for (const [index, step] of steps.entries()) {
      const isAsking = stepEvents(events, step, `${index}`);
      if (isAsking) return [...events, done("interrupted", "tool_use")];
    }
    if (cut && end !== "success") events.push(...cutEvents(cut, end === "cancelled" ? "stopped" : "failed"));
    if (end === "error") events.push({ event: "error", data: { code: "internal", message: "It broke." } });
    else if (end === "limit") events.push(done("error", "max_iterations"));
    else if (end === "cancelled") events.push(done("cancelled", "cancelled"));
    else events.push(done("success", "end_turn"));
    return events;
  });

type StepValue = typeof Step extends fc.Arbitrary<infer T> ? T : never;
type DeltaValue = typeof Delta extends fc.Arbitrary<infer T> ? T : never;

const written = (message: Message): StreamEvent => ({ event: "on_message", data: { message } });
const done = (
  status: "success" | "interrupted" | "cancelled" | "error",
  stop_reason: string,
): StreamEvent => ({
  event: "done",
  data: { status, stop_reason, usage: NO_USAGE },
});
const streamed = (data: DeltaValue): StreamEvent => ({ event: "on_chat_model_stream", data });

/** An answer that is cut off: what was said of it is kept. */
function cutEvents(deltas: readonly DeltaValue[], incomplete: "stopped" | "failed"): StreamEvent[] {
  const message_id = "msg_cut";
  const said = deltas.flatMap((delta) => ("delta" in delta ? [delta.delta] : [])).join("");
  const error = { code: "cancelled", message: "Cancelled before the model had finished." };
  return [
    { event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
    ...deltas.map(streamed),
    { event: "on_chat_model_end", name: "m", data: { message_id, error } },
    ...(said.trim() === ""
      ? []
      : [written({ id: message_id, created_at: AT, role: "assistant", content: said, incomplete })]),
  ];
}

/** Whether the step ends with an open question. */
function stepEvents(
  events: StreamEvent[],
  { deltas, failures, calls, aside }: StepValue,
  id: string,
): boolean {
  for (const [index, { deltas: said, isCrash }] of failures.entries()) {
    const message_id = `msg_${id}_failed_${index}`;
    events.push(
      { event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
      ...said.map(streamed),
    );
    if (isCrash)
      events.push(
        { event: "message_discard", data: { message_id } },
        { event: "run_resumed", data: { attempt: 2 } },
      );
    else
      events.push({
        event: "on_chat_model_end",
        name: "m",
        data: { message_id, error: { code: "model_overloaded", message: "busy" } },
      });
  }
  const message_id = `msg_${id}`;
  const tool_calls = calls.map(
    (call, index): ToolCall => ({ id: `call_${id}_${index}`, name: call.name, args: { index } }),
  );
  events.push(
    { event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
    ...deltas.map(streamed),
    ...tool_calls.flatMap(({ id: callId, name, args }, index): StreamEvent[] => [
      { event: "on_chat_model_stream", data: { tool_call: { index, id: callId, name, args_delta: "" } } },
      { event: "on_chat_model_stream", data: { tool_call: { index, args_delta: JSON.stringify(args) } } },
    ]),
    { event: "on_chat_model_end", name: "m", data: { message_id, stop_reason: "tool_use", usage: NO_USAGE } },
    written({
      ...{ id: message_id, created_at: AT, role: "assistant" as const },
      content: deltas.flatMap((delta) => ("delta" in delta ? [delta.delta] : [])).join(""),
      ...(tool_calls.length > 0 ? { tool_calls } : {}),
    }),
    ...aside,
  );
  let isAsking = false;
  for (const [index, call] of tool_calls.entries()) {
    const spec = calls[index];
    if (spec) isAsking = callEvents(events, call, spec) || isAsking;
  }
  return isAsking;
}

function callEvents(
  events: StreamEvent[],
  call: ToolCall,
  { outcome, progress, child }: StepValue["calls"][number],
): boolean {
  const { id: call_id, name, args } = call;
  const answered = (error?: string) =>
    written({
      id: `${call_id}_result`,
      created_at: AT,
      role: "tool",
      content: "out",
      tool_call_id: call_id,
      name,
      ...(error ? { error } : {}),
    });
  const asked = (kind: "approval" | "question"): StreamEvent => ({
    event: "on_interrupt",
    data: {
      id: `${kind}_${call_id}`,
      kind,
      call_id,
      run_id: RUN.id,
      name,
      args,
      prompt: "May it?",
      created_at: AT,
    },
  });
  if (outcome === "unstarted") events.push(answered("Not run."));
  if (outcome === "approval") events.push(asked("approval"));
  if (outcome === "unstarted" || outcome === "approval") return outcome === "approval";

  events.push({ event: "on_tool_start", name, data: { call_id, args } });
  if (outcome === "question")
    events.push(asked("question"), {
      event: "on_tool_end",
      name,
      data: { call_id, interrupted: true, duration_ms: 1 },
    });
  else {
    for (const output of progress)
      events.push({ event: "on_tool_progress", name, data: { call_id, output } });
    if (name === "task") events.push(...childEvents(call_id, child));
    events.push(
      { event: "on_tool_end", name, data: { call_id, output: "out", duration_ms: 1 } },
      answered(outcome === "error" ? "It failed." : undefined),
    );
  }
  return outcome === "question";
}

function childEvents(call_id: string, said: readonly string[]): StreamEvent[] {
  const id = `${call_id}_child`;
  const path = [id];
  return [
    {
      event: "on_subagent_start",
      data: { id, call_id, agent: "helper", name: "helper-1", thread_id: "child", run_id: "run_2" },
    },
    ...said.flatMap((content, index): StreamEvent[] => {
      const message_id = `${id}_${index}`;
      return [
        { event: "on_chat_model_start", name: "m", path, data: { message_id, model: "m" } },
        { event: "on_chat_model_stream", path, data: { delta: content } },
        { event: "on_chat_model_end", name: "m", path, data: { message_id } },
        {
          event: "on_message",
          path,
          data: { message: { id: message_id, created_at: AT, role: "assistant", content } },
        },
      ];
    }),
    { event: "on_subagent_end", data: { id, call_id, status: "completed", summary: "Done." } },
  ];
}
