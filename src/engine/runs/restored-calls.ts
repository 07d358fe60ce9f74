// Open calls of a thread that was restored from a backup. They may have been run between the backup and the restore; no log that is
// left has those starts, so no model reads that they were not run.

import type { Message } from "../../agent/core/message.ts";
import type { StandIn } from "../../agent/core/run.ts";
import { failed } from "../../agent/core/tool.ts";

/** The last restore of what the stores hold. */
export interface Restoration {
  /** When the backup was made. */
  readonly backup_at: string;
  /** Later messages are no older than the restore. */
  readonly restored_at: string;
}

/** The calls among `open` that the backup had. */
export function restoredCalls(
  restoration: Restoration | undefined,
  { messages, open }: { readonly messages: readonly Message[]; readonly open: readonly string[] },
): ReadonlySet<string> {
  if (!restoration) return new Set();
  const restoredAt = Date.parse(restoration.restored_at);
  const isRestored = (id: string) => {
    const made = messages.findLast(
      (each) => each.role === "assistant" && each.tool_calls?.some((call) => call.id === id),
    );
    return made !== undefined && Date.parse(made.created_at) <= restoredAt;
  };
  return new Set(open.filter(isRestored));
}

/** `standIn`, which knows what the thread waits for, and then what is known of the restored calls. */
export function withRestored(
  standIn: StandIn,
  restored: ReadonlySet<string>,
  restoration: Restoration | undefined,
): StandIn {
  if (!restoration || restored.size === 0) return standIn;
  const text = `Outcome unknown: this thread was restored from a backup made at ${restoration.backup_at}. The call may have taken effect after that; check before repeating it.`;
  return async (call, how) =>
    (await standIn(call, how)) ?? (restored.has(call.id) ? failed(text) : undefined);
}
