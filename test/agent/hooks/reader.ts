// A reader that leaves in the middle, and a model that would never have ended.

import type { Model } from "../../../src/agent/core/model.ts";
import type { EventName, StreamEvent } from "../../../src/protocol/event.ts";

export function leavingAt(name: EventName): (event: StreamEvent) => void {
  return ({ event }) => {
    if (event === name) throw new Error("gone");
  };
}

export function endless(): { model: Model; isClosed(): boolean } {
  let closed = false;
  const model: Model = {
    name: "scripted:endless",
    async *stream() {
      try {
        for (;;) yield { event: "on_chat_model_stream", data: { delta: "word " } };
      } finally {
        closed = true;
      }
    },
  };
  return { model, isClosed: () => closed };
}
