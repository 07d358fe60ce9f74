// What events mean, as the scripts take it.

import { type Change, changeOf, type Draft } from "../endings.ts";
import { patchName } from "./records.ts";

export interface Changes {
  /** How many messages there are. */
  readonly added: number;
  /** The messages, each an id and a text; then the slots: what is done, the slot, its patches' name, and with what. */
  readonly args: readonly string[];
}

export function changesOf(drafts: readonly Draft[]): Changes {
  const messages: string[] = [];
  const slots: string[] = [];
  for (const draft of drafts) {
    const change = changeOf(draft);
    if (change?.event === "on_message")
      messages.push(change.data.message.id, JSON.stringify(change.data.message));
    else if (change?.event === "on_state") slots.push(...slotArgs(change.data));
  }
  return { added: messages.length / 2, args: [...messages, ...slots] };
}

/** That a slot goes. */
export const deletionOf = (key: string) => slotArgs({ key });

function slotArgs({ key, value, patch }: Extract<Change, { event: "on_state" }>["data"]): string[] {
  const name = patchName(key);
  if (patch) {
    const members = Object.entries(patch).flatMap(([member, each]) => [member, JSON.stringify(each)]);
    return ["patch", key, name, String(members.length / 2), ...members];
  }
  return value === undefined ? ["delete", key, name, ""] : ["set", key, name, JSON.stringify(value)];
}
