// Tracks a run's questions that wait for an answer, based on its events.

import type { Interrupt } from "./interrupt.ts";
import type { Message } from "./message.ts";

export interface OpenQuestions {
  ask(question: Interrupt): void;
  answer(id: string): void;
  /** Removes the question of a call that has a result. */
  settle(message: Message): void;
  /** Call this when another run of the turn begins. That run repeats its open questions. */
  clear(): void;
  /** Returns the open questions in the order in which they were asked. */
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
