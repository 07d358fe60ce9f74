// Open calls of a thread that was restored from a backup. They may have run between the backup and the restore, but no
// remaining log contains their starts. The model must therefore not be told that they did not run.

import type { Message } from "../../agent/core/message.ts";
import type { StandIn } from "../../agent/core/run.ts";
import { failed } from "../../agent/core/tool.ts";

/** The last restore of the stores' data. */
export interface Restoration {
  /** Time of the backup. */
  readonly backup_at: string;
  /** Time of the restore. Later messages are not older than this. */
  readonly restored_at: string;
}

/** Returns those `open` calls that were in the backup. */
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

/** Asks `standIn` first, which knows what the thread waits for, and then checks the restored calls. */
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
