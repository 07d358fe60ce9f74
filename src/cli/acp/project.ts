// A turn as ACP's session updates: a pure fold of its events.

import type { PlanEntry, SessionUpdate } from "@agentclientprotocol/sdk";
import type { Message } from "../../core/message.ts";
import { shownTodos } from "../../http/wires/shown.ts";
import type { EventName, StreamEvent } from "../../protocol/event.ts";
import { blocksOf, text } from "./content.ts";
import { kindOf, shownCall, shownResult } from "./tool-call.ts";

export interface ProjectOptions {
  /** The agent's context window, in tokens. */
  readonly contextWindow: number;
  /** Whether the editor shows notices, and compactions. It must not be sent what it does not. */
  readonly shows: { readonly notices: boolean; readonly compaction: boolean };
}

/** Called with each event of a turn, in order. */
export interface Fold {
  updatesOf(event: StreamEvent): SessionUpdate[];
  /** Ends the calls that are still shown as open: the turn ended without them. */
  closing(): SessionUpdate[];
}

type DataOf<N extends EventName> = Extract<StreamEvent, { event: N }>["data"];

/** Characters of a running tool's output that are shown, its newest. */
const SHOWN_OUTPUT = 4_000;

export function project({ contextWindow, shows }: ProjectOptions): Fold {
  let messageId = "";
  let hasSpoken = false;
  let hasPlan = false;
  let compactions = 0;
  /** Calls that are shown and have no result, with the output so far. */
  const open = new Map<string, string>();
  /** Those that the message in progress has begun. */
  let begun: string[] = [];

  const ended = (ids: readonly string[]): SessionUpdate[] =>
    ids
      .filter((id) => open.delete(id))
      .map((toolCallId) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }));

  /** A message that starts over: what it said stays on the screen, what it began is closed. */
  const takeBack = (): SessionUpdate[] => {
    const updates = ended(begun);
    begun = [];
    return updates;
  };

  const streamed = (data: DataOf<"on_chat_model_stream">): SessionUpdate[] => {
    if ("delta" in data)
      return [{ sessionUpdate: "agent_message_chunk", messageId, content: text(data.delta) }];
    if ("reasoning_delta" in data)
      return [{ sessionUpdate: "agent_thought_chunk", messageId, content: text(data.reasoning_delta) }];
    if (!("tool_call" in data)) return [];
    const { id, name } = data.tool_call;
    if (id === undefined || name === undefined || open.has(id)) return [];
    open.set(id, "");
    begun.push(id);
    return [
      { sessionUpdate: "tool_call", toolCallId: id, title: name, kind: kindOf(name), status: "pending" },
    ];
  };

  const written = (message: Message): SessionUpdate[] => {
    if (message.role === "tool") {
      open.delete(message.tool_call_id);
      return [{ sessionUpdate: "tool_call_update", ...shownResult(message) }];
    }
    if (message.role === "assistant") {
      begun = [];
      return (message.tool_calls ?? []).map((call) => {
        if (open.has(call.id)) return { sessionUpdate: "tool_call_update", ...shownCall(call) };
        open.set(call.id, "");
        return { sessionUpdate: "tool_call", status: "pending", ...shownCall(call) };
      });
    }
    // What began the turn is on the editor's screen; what was said into it from elsewhere is not.
    return message.role === "user" && hasSpoken ? said(message) : [];
  };

  const warned = ({ code, message }: DataOf<"warning">): SessionUpdate[] => {
    if (code === "context_compacted" && shows.compaction)
      return [
        {
          sessionUpdate: "compaction_update",
          compactionId: `compaction_${messageId}_${++compactions}`,
          status: "completed",
        },
      ];
    return shows.notices ? [{ sessionUpdate: "notice", severity: "warning", title: message }] : [];
  };

  const updatesOf = (event: StreamEvent): SessionUpdate[] => {
    // A subagent is shown as the call that gave it its task.
    if (event.path && event.path.length > 0) return [];
    switch (event.event) {
      case "on_chat_model_start":
        messageId = event.data.message_id;
        hasSpoken = true;
        return [];
      case "on_chat_model_stream":
        return streamed(event.data);
      case "on_chat_model_end": {
        const { error, usage } = event.data;
        if (error) return takeBack();
        if (!usage) return [];
        const used = usage.input_tokens + usage.output_tokens;
        return [{ sessionUpdate: "usage_update", used, size: contextWindow }];
      }
      case "message_discard":
        return takeBack();
      case "on_message":
        return written(event.data.message);
      case "on_tool_start":
        return [{ sessionUpdate: "tool_call_update", toolCallId: event.data.call_id, status: "in_progress" }];
      case "on_tool_progress": {
        const { call_id: toolCallId, output } = event.data;
        const shown = `${open.get(toolCallId) ?? ""}${output}`.slice(-SHOWN_OUTPUT);
        open.set(toolCallId, shown);
        return [
          {
            sessionUpdate: "tool_call_update",
            toolCallId,
            content: [{ type: "content", content: text(shown) }],
          },
        ];
      }
      case "on_state": {
        if (event.data.key !== "todos") return [];
        const entries = planOf(event.data.value);
        const isNews = hasPlan || entries.length > 0;
        hasPlan = isNews;
        return isNews ? [{ sessionUpdate: "plan", entries }] : [];
      }
      case "warning":
        return warned(event.data);
      default:
        return [];
    }
  };
  return { updatesOf, closing: () => ended([...open.keys()]) };
}

/** A thread as the updates that would have shown it. */
export function historyOf(messages: readonly Message[], todos: unknown): SessionUpdate[] {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === "tool" ? [[message.tool_call_id, message] as const] : [],
    ),
  );
  const entries = planOf(todos);
  return [
    ...messages.flatMap((message): SessionUpdate[] => {
      if (message.role === "user") return said(message);
      if (message.role !== "assistant") return [];
      const { id: messageId, content, reasoning = [], tool_calls = [] } = message;
      return [
        ...reasoning.map(
          (thought): SessionUpdate => ({
            sessionUpdate: "agent_thought_chunk",
            messageId,
            content: text(thought.text),
          }),
        ),
        ...blocksOf(content).map(
          (block): SessionUpdate => ({ sessionUpdate: "agent_message_chunk", messageId, content: block }),
        ),
        ...tool_calls.map((call): SessionUpdate => {
          const result = results.get(call.id);
          const end = result ? shownResult(result) : { status: "pending" as const };
          return { sessionUpdate: "tool_call", ...shownCall(call), ...end };
        }),
      ];
    }),
    ...(entries.length > 0 ? [{ sessionUpdate: "plan", entries } as const] : []),
  ];
}

const said = ({ id: messageId, content }: Extract<Message, { role: "user" }>): SessionUpdate[] =>
  blocksOf(content).map((block) => ({ sessionUpdate: "user_message_chunk", messageId, content: block }));

const STATUSES: Readonly<Record<string, PlanEntry["status"]>> = {
  in_progress: "in_progress",
  completed: "completed",
};

const planOf = (todos: unknown): PlanEntry[] =>
  shownTodos(todos).map(({ content, status }) => ({
    content,
    priority: "medium",
    status: STATUSES[status] ?? "pending",
  }));
