// A hub: what all agents of a program do, for whoever subscribes to the one kind of it.

import { type ErrorInfo, messageOf } from "../../core/errors.ts";
import type { StreamEvent } from "../../core/event.ts";
import type { AgentHandle } from "../handle.ts";

export interface Topic<T> {
  publish(event: T): void;
  /** Until the function that is returned is called. */
  subscribe(listener: (event: T) => void): () => void;
}

/** What all of them carry; `message_id` is the one that is open, or was last. */
interface Said {
  readonly session_id: string;
  readonly message_id: string;
}
export type AgentEvent = Said &
  (
    | { readonly type: "text_delta"; readonly text: string }
    | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly args: unknown }
    | { readonly type: "tool_result"; readonly id: string; readonly name: string; readonly is_error: boolean }
    | { readonly type: "complete"; readonly status: string }
    | { readonly type: "error"; readonly error: Pick<ErrorInfo, "message"> & { readonly code: string } }
  );
export type ToolEvent = Said & { readonly id: string; readonly name: string } & (
    | { readonly type: "started"; readonly args: unknown }
    | { readonly type: "completed"; readonly output: string; readonly duration_ms: number }
    | { readonly type: "failed"; readonly error: string; readonly duration_ms: number }
  );

export interface Hub {
  readonly agent: Topic<AgentEvent>;
  readonly tool: Topic<ToolEvent>;
  /** Publishes what is said on a handle's thread, until the function that is returned is called. */
  attach(handle: AgentHandle): () => void;
}

/** What a listener throws, or rejects with, `onFailure` is told; the others hear the event all the same. */
export function createHub(
  onFailure: (error: unknown) => void = (error) => console.error(messageOf(error)),
): Hub {
  const agent = createTopic<AgentEvent>(onFailure);
  const tool = createTopic<ToolEvent>(onFailure);
  return {
    agent,
    tool,
    attach(handle) {
      let message_id = "";
      return handle.subscribe((event) => {
        if (event.event === "on_chat_model_start" && !event.path) message_id = event.data.message_id;
        const said = { session_id: handle.id, message_id };
        for (const told of agentEvents(event)) agent.publish({ ...said, ...told });
        for (const told of toolEvents(event)) tool.publish({ ...said, ...told });
      });
    },
  };
}

function createTopic<T>(onFailure: (error: unknown) => void): Topic<T> {
  const listeners = new Set<{ hear(event: T): void }>();
  return {
    publish(event) {
      for (const listener of listeners) (async () => listener.hear(event))().catch(onFailure);
    },
    subscribe(hear) {
      const listener = { hear };
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

function agentEvents(event: StreamEvent): Without<AgentEvent, keyof Said>[] {
  if (event.path) return [];
  switch (event.event) {
    case "on_chat_model_stream":
      return "delta" in event.data ? [{ type: "text_delta", text: event.data.delta }] : [];
    case "on_tool_start":
      return [{ type: "tool_call", id: event.data.call_id, name: event.name, args: event.data.args }];
    case "on_tool_end": {
      const { call_id: id, error, interrupted } = event.data;
      return interrupted
        ? []
        : [{ type: "tool_result", id, name: event.name, is_error: error !== undefined }];
    }
    case "done":
      return [{ type: "complete", status: event.data.status }];
    case "error":
      return [{ type: "error", error: event.data }];
    default:
      return [];
  }
}

function toolEvents(event: StreamEvent): Without<ToolEvent, keyof Said>[] {
  if (event.path) return [];
  if (event.event === "on_tool_start")
    return [{ type: "started", id: event.data.call_id, name: event.name, args: event.data.args }];
  if (event.event !== "on_tool_end" || event.data.interrupted) return [];
  const { call_id: id, output = "", error, duration_ms } = event.data;
  const ended = { id, name: event.name, duration_ms };
  return [
    error === undefined ? { type: "completed", ...ended, output } : { type: "failed", ...ended, error },
  ];
}
