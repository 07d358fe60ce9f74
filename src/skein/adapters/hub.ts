// A hub: publishes the events of agents under two topics, `agent` and `tool`.

import type { AgentHandle, ErrorInfo, StreamEvent } from "../../index.ts";

export interface Topic<T> {
  publish(event: T): void;
  /** Calls `listener` for each event of the topic. Returns a function that unsubscribes. */
  subscribe(listener: (event: T) => void): () => void;
}

/** The origin of an event. `message_id` is the id of the open message, or of the last one. */
interface Source {
  readonly session_id: string;
  readonly message_id: string;
}
export type AgentEvent = Source &
  (
    | { readonly type: "text_delta"; readonly text: string }
    | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly args: unknown }
    | { readonly type: "tool_result"; readonly id: string; readonly name: string; readonly is_error: boolean }
    | { readonly type: "complete"; readonly status: string }
    | { readonly type: "error"; readonly error: Pick<ErrorInfo, "message"> & { readonly code: string } }
  );
export type ToolEvent = Source & { readonly id: string; readonly name: string } & (
    | { readonly type: "started"; readonly args: unknown }
    | { readonly type: "completed"; readonly output: string; readonly duration_ms: number }
    | { readonly type: "failed"; readonly error: string; readonly duration_ms: number }
  );

export interface Hub {
  readonly agent: Topic<AgentEvent>;
  readonly tool: Topic<ToolEvent>;
  /** Publishes the events of a handle's thread. Returns a function that detaches the handle. */
  attach(handle: AgentHandle): () => void;
}

/** Creates a hub. `onFailure` receives a listener's errors. Other listeners still receive the event. */
export function createHub(onFailure: (error: unknown) => void = (error) => console.error(error)): Hub {
  const agent = createTopic<AgentEvent>(onFailure);
  const tool = createTopic<ToolEvent>(onFailure);
  return {
    agent,
    tool,
    attach(handle) {
      let message_id = "";
      return handle.subscribe((event) => {
        if (event.event === "on_chat_model_start" && !event.path) message_id = event.data.message_id;
        const source = { session_id: handle.id, message_id };
        for (const each of agentEvents(event)) agent.publish({ ...source, ...each });
        for (const each of toolEvents(event)) tool.publish({ ...source, ...each });
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

function agentEvents(event: StreamEvent): Without<AgentEvent, keyof Source>[] {
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

function toolEvents(event: StreamEvent): Without<ToolEvent, keyof Source>[] {
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
