// What a new thread begins with, as its script takes it.

import type { NewThread } from "../../core/stores.ts";

export interface Beginning {
  /** How many messages there are. */
  readonly added: number;
  /** The messages, each once; the id and the place of each; the slots and their values. */
  readonly args: readonly string[];
}

export function beginningOf({ messages = [], state = {} }: NewThread): Beginning {
  const added = new Map<string, string>();
  for (const message of messages) if (!added.has(message.id)) added.set(message.id, JSON.stringify(message));
  const places = [...added.keys()].flatMap((id, place) => [id, String(place)]);
  const slots = Object.entries(state).filter(([, value]) => value !== undefined);
  const texts = slots.flatMap(([slot, value]) => [slot, JSON.stringify(value)]);
  return { added: added.size, args: [...added.values(), ...places, ...texts] };
}
