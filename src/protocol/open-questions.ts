// The questions of a run that wait for an answer, as its events tell.

import type { Interrupt } from "./interrupt.ts";
import type { Message } from "./message.ts";

export interface OpenQuestions {
  ask(question: Interrupt): void;
  answer(id: string): void;
  /** A call that has its result waits for no answer. */
  settle(message: Message): void;
  /** Another run of the turn begins: what is open then is asked again. */
  clear(): void;
  /** In the order in which they were asked. */
  list(): Interrupt[];
}

export function openQuestions(): OpenQuestions {
  const open = new Map<string, Interrupt>();
  return {
    ask(question) {
      open.set(question.id, question);
    },
    answer(id) {
      open.delete(id);
    },
    settle(message) {
      if (message.role !== "tool") return;
      for (const [id, { call_id }] of open) if (call_id === message.tool_call_id) open.delete(id);
    },
    clear: () => open.clear(),
    list: () => [...open.values()],
  };
}
