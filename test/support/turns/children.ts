// The events of a subagent, as its parent forwards them.

import type { StreamEvent } from "../../../src/protocol/event.ts";
import { AT, RUN, resultOf, written } from "./events.ts";
import type { CallValue } from "./story.ts";

/** It does all of its task; or it asks in the middle of it, and continues in a later run. */
export type ChildPhase = "whole" | "asks" | "continues";

/** Models number their calls, so that those of two agents may have one id. */
const INNER = { id: "inner", name: "execute", args: { command: "ls" } };

export function childEvents(call_id: string, child: CallValue["child"], phase: ChildPhase): StreamEvent[] {
  const thread_id = `${call_id}_thread`;
  const run_id = phase === "continues" ? `${call_id}_run_2` : `${call_id}_run_1`;
  const ended =
    phase === "asks"
      ? { status: "interrupted" as const, summary: "" }
      : { status: child.background ?? "completed", summary: "Done." };
  const saved = (status: string): StreamEvent => ({
    event: "on_state",
    data: { key: "subagents", patch: { [thread_id]: { number: 1, agent: "helper", status, run_id } } },
  });
  return [
    saved("running"),
    {
      event: "on_subagent_start",
      data: { id: call_id, call_id, agent: "helper", name: "helper-1", parent: RUN.agent, thread_id, run_id },
    },
    ...within(call_id, [
      ...(phase === "continues"
        ? []
        : [written({ id: `${call_id}_task`, created_at: AT, role: "user", content: "Look." })]),
      ...inner(`${call_id}_asks`, child, phase),
      ...(phase === "asks" ? [] : said(call_id, child)),
    ]),
    saved(ended.status),
    { event: "on_subagent_end", data: { id: call_id, call_id, ...ended } },
  ];
}

const within = (id: string, events: readonly StreamEvent[]): StreamEvent[] =>
  events.map((event) => ({ ...event, path: [id, ...(event.path ?? [])] }));

/** Its own tool call. */
function inner(message_id: string, { calls }: CallValue["child"], phase: ChildPhase): StreamEvent[] {
  const { id: call_id, name, args } = INNER;
  const start: StreamEvent = { event: "on_tool_start", name, data: { call_id, args } };
  const end: StreamEvent[] = [
    { event: "on_tool_end", name, data: { call_id, output: "out", duration_ms: 1 } },
    resultOf(INNER, "out"),
  ];
  const asked = { id: "approval_inner", kind: "approval" as const, call_id, run_id: "child_run" };
  const question = { ...asked, name, args, prompt: "May it?", created_at: AT };
  const patched = (patch: object): StreamEvent => ({
    event: "on_state",
    data: { key: "interrupts", patch: { approval_inner: patch } },
  });
  if (phase === "continues")
    return [
      start,
      { event: "on_resume", data: { id: question.id, name, decision: "approve" } },
      patched({ ...question, answer: { id: question.id, decision: "approve" } }),
      ...end,
    ];
  if (phase === "whole" && !calls) return [];
  const asks: StreamEvent[] = [
    { event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
    {
      event: "on_chat_model_stream",
      data: { tool_call: { index: 0, id: call_id, name, args_delta: JSON.stringify(args) } },
    },
    { event: "on_chat_model_end", name: "m", data: { message_id, stop_reason: "tool_use" } },
    written({ id: message_id, created_at: AT, role: "assistant", content: "", tool_calls: [INNER] }),
    start,
  ];
  if (phase === "whole") return [...asks, ...end];
  return [
    ...asks,
    { event: "on_interrupt", data: question },
    patched(question),
    { event: "on_tool_end", name, data: { call_id, interrupted: true, duration_ms: 1 } },
  ];
}

/** What it says, and its own child. */
function said(call_id: string, { said: texts, below }: CallValue["child"]): StreamEvent[] {
  const messages = texts.flatMap((content, index): StreamEvent[] => {
    const message_id = `${call_id}_said_${index}`;
    return [
      { event: "on_chat_model_start", name: "m", data: { message_id, model: "m" } },
      { event: "on_chat_model_stream", data: { delta: content } },
      { event: "on_chat_model_end", name: "m", data: { message_id, stop_reason: "end_turn" } },
      written({ id: message_id, created_at: AT, role: "assistant", content }),
    ];
  });
  if (below === undefined) return messages;
  const child = { said: [below], calls: false, below: undefined, background: undefined };
  const id = `${call_id}_below`;
  return [
    { event: "on_tool_start", name: "task", data: { call_id: id, args: {} } },
    ...childEvents(id, child, "whole"),
    { event: "on_tool_end", name: "task", data: { call_id: id, output: "out", duration_ms: 1 } },
    resultOf({ id, name: "task", args: {} }, "out"),
    ...messages,
  ];
}
