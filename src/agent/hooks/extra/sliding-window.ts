// Shows the model only the most recent complete turns, so no call loses its result. The thread keeps all turns. The window
// moves in steps, so most requests begin like the previous one and hit the prompt cache.

import type { Hook } from "../../core/hook.ts";
import { type Message, systemMessages } from "../../core/message.ts";

interface Options {
  readonly max_messages: number;
  readonly keep: number;
}

export function create({ max_messages, keep }: Options): Hook {
  return {
    name: "sliding_window",
    modifyRequest(request) {
      const { messages } = request;
      const start = windowStart(messages, max_messages, keep * max_messages);
      if (start === 0) return request;
      return {
        ...request,
        messages: [...systemMessages(messages.slice(0, start)), ...messages.slice(start)],
      };
    },
  };
}

/**
 * Returns the index at which the window begins. It replays the thread from its start, so the result depends
 * only on the messages and never moves back.
 */
function windowStart(messages: readonly Message[], max: number, kept: number): number {
  let start = 0;
  let turns: number[] = [];
  let open = new Set<string>();
  for (const [at, message] of messages.entries()) {
    if (message.role === "assistant") open = new Set(message.tool_calls?.map(({ id }) => id));
    if (message.role === "tool") open.delete(message.tool_call_id);
    const isTurn = message.role === "user" && messages[at - 1]?.role !== "user" && open.size === 0;
    if (isTurn) turns.push(at);
    if (at + 1 - start <= max) continue;
    start = turns.find((turn) => at + 1 - turn <= kept) ?? turns.at(-1) ?? start;
    turns = turns.filter((turn) => turn >= start);
  }
  return start;
}
