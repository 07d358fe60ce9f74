// The frames for a page: the chunks of a turn that is in progress or has just ended.

import type { Message } from "../../agent/core/message.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { newestRun } from "../../engine/runs/control.ts";
import { openOn } from "../../engine/runs/start.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Frames } from "../../server/http/sse.ts";
import { foldedFrames } from "../fold.ts";
import { type ProjectOptions, project } from "./table.ts";

/** Returns the turn starting with its run `from`. `at` is its current run. */
export function turnFrames(
  stores: Stores,
  owner: Owner,
  { from, at = from }: { readonly from: RunRecord; readonly at?: RunRecord | undefined },
  options: Omit<ProjectOptions, "at">,
): Frames {
  const fold = project({ ...options, at: at.id });
  // Returns the messages after the user's newest message.
  const messages = async () => {
    const all = await stores.threads.messages(owner, from.thread_id);
    return all.slice(all.findLastIndex(({ role }) => role === "user") + 1);
  };
  return foldedFrames(stores, { owner, from, at, fold, unit: "turn", messages });
}

/**
 * Returns the newest run if its turn ended recently. A page first reads the messages and then connects, so a turn that
 * ends in between would be missing unless it is streamed again. A page that already has the turn does not show it
 * twice. Versions before 7 are the exception: they would add it again. A turn that waits for an answer is not streamed,
 * because the answer may be on its way.
 */
export async function justEnded(
  { runs, threads }: Stores,
  owner: Owner,
  threadId: string,
  version: ProjectOptions["version"],
): Promise<RunRecord | undefined> {
  if (version < 7) return undefined;
  const newest = await newestRun(runs, owner, threadId);
  if (newest?.ended_at === undefined) return undefined;
  if (Date.now() - Date.parse(newest.ended_at) > STREAMED_AGAIN_MS) return undefined;
  return (await openOn(threads, owner, threadId)).length > 0 ? undefined : newest;
}

/**
 * How long a turn is streamed again after its end, in ms. This is longer than a page needs between its two requests, or
 * a network needs to recover.
 */
const STREAMED_AGAIN_MS = 5 * 60_000;

/** Returns the id of the user's newest message. */
export const newestUserMessage = (messages: readonly Message[]): string =>
  messages.findLast(({ role }) => role === "user")?.id ?? "start";
