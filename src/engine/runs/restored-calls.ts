// Open calls of a thread that was restored from a backup. They may have run between the backup and the restore, but the
// remaining logs do not show their starts. The model must therefore not be told that they did not run.

import type { Message } from "../../agent/core/message.ts";
import type { StandIn } from "../../agent/core/run.ts";
import { failed } from "../../agent/core/tool.ts";

/** The most recent restore of the stores from a backup. */
export interface Restoration {
  /** The time of the backup. */
  readonly backup_at: string;
  /** The time of the restore. Messages written after the restore have this time or a later one. */
  readonly restored_at: string;
}

/** Returns the `open` calls that were in the backup. */
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

/**
 * Calls `standIn` first, because it may return a result that the thread is waiting for, and then checks the restored
 * calls.
 */
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
