// Converts a turn to ACP's session updates, as a pure fold of its events.

import type { PlanEntry, SessionUpdate } from "@agentclientprotocol/sdk";
import type { Message } from "../../agent/core/message.ts";
import { lastChars } from "../../lib/text.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { readTurn } from "../../protocol/turn-reader.ts";
import { shownTodos } from "../shown.ts";
import { blocksOf, text } from "./content.ts";
import { kindOf, shownCall, shownResult } from "./tool-call.ts";

export interface ProjectOptions {
  /** The agent's context window, in tokens. */
  readonly contextWindow: number;
  /** The notifications that the editor can show. It must not receive any others. */
  readonly shows: { readonly notices: boolean; readonly compaction: boolean };
}

/** Called with each event of a turn, in order. */
export interface UpdateFold {
  updatesOf(event: StreamEvent): readonly SessionUpdate[];
  /** Ends the calls that are still shown as open because the turn ended without their results. */
  closing(): SessionUpdate[];
}

/** The maximum number of characters to show of a running tool's output. The most recent characters are kept. */
const SHOWN_OUTPUT = 4_000;

export function project({ contextWindow, shows }: ProjectOptions): UpdateFold {
  let messageId = "";
  let hasPlan = false;
  let compactions = 0;
  /** The calls on the screen that have no result, with their output so far. */
  const open = new Map<string, string>();
  /** The calls that the message in progress has started. */
  let begun: string[] = [];

  const ended = (ids: readonly string[]): SessionUpdate[] =>
    ids
      .filter((id) => open.delete(id))
      .map((toolCallId) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }));

  const read = readTurn<SessionUpdate>({
    step({ id }) {
      messageId = id;
      return [];
    },
    delta: (kind, delta) => [
      {
        sessionUpdate: kind === "text" ? "agent_message_chunk" : "agent_thought_chunk",
        messageId,
        content: text(delta),
      },
    ],
    callDelta({ id, name }) {
      if (id === undefined || name === undefined || open.has(id)) return [];
      open.set(id, "");
      begun.push(id);
      return [
        { sessionUpdate: "tool_call", toolCallId: id, title: name, kind: kindOf(name), status: "pending" },
      ];
    },
    stepEnd({ failed, usage }) {
      if (failed) {
        // The message's text stays on the screen, and its calls are closed.
        const updates = ended(begun);
        begun = [];
        return updates;
      }
      if (!usage) return [];
      const used = usage.input_tokens + usage.output_tokens;
      return [{ sessionUpdate: "usage_update", used, size: contextWindow }];
    },
    assistant({ tool_calls = [] }) {
      begun = [];
      return tool_calls.map((call) => {
        if (open.has(call.id)) return { sessionUpdate: "tool_call_update", ...shownCall(call) };
        open.set(call.id, "");
        return { sessionUpdate: "tool_call", status: "pending", ...shownCall(call) };
      });
    },
    // The editor already shows the message that started the turn. Steering messages from other clients are shown here.
    user: (message, isSteering) => (isSteering ? said(message) : []),
    result(message) {
      open.delete(message.tool_call_id);
      return [{ sessionUpdate: "tool_call_update", ...shownResult(message) }];
    },
    toolStart: (_, { call_id: toolCallId }) => [
      { sessionUpdate: "tool_call_update", toolCallId, status: "in_progress" },
    ],
    toolProgress(_, { call_id: toolCallId, output }) {
      const shown = lastChars(`${open.get(toolCallId) ?? ""}${output}`, SHOWN_OUTPUT);
      open.set(toolCallId, shown);
      const content = [{ type: "content" as const, content: text(shown) }];
      return [{ sessionUpdate: "tool_call_update", toolCallId, content }];
    },
    todos(value) {
      const entries = planOf(value);
      hasPlan ||= entries.length > 0;
      return hasPlan ? [{ sessionUpdate: "plan", entries }] : [];
    },
    warning({ code, message }) {
      if (code !== "context_compacted" || !shows.compaction)
        return shows.notices ? [{ sessionUpdate: "notice", severity: "warning", title: message }] : [];
      const compactionId = `compaction_${messageId}_${++compactions}`;
      return [{ sessionUpdate: "compaction_update", compactionId, status: "completed" }];
    },
  });
  return { updatesOf: (event) => read(event, undefined), closing: () => ended([...open.keys()]) };
}

/** Returns the updates that an editor would have received while this thread was written. */
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
