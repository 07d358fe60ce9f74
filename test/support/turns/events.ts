// The run of these turns, and the events that all of their parts write.

import { type Message, NO_USAGE, type ToolCall } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";

export const AT = "2026-01-01T00:00:00.000Z";

export const RUN: RunRecord = {
  ...{ id: "run_1", thread_id: "thread", agent: "assistant", status: "running", attempt: 1 },
  ...{ usage: NO_USAGE, metadata: {}, created_at: AT },
};

export const written = (message: Message): StreamEvent => ({ event: "on_message", data: { message } });

export const resultOf = ({ id, name }: ToolCall, content: string, error?: string): StreamEvent =>
  written({
    ...{ id: `${id}_result`, created_at: AT, role: "tool", content, tool_call_id: id, name },
    ...(error === undefined ? {} : { error }),
  });
