// The API key of a run that waits for an account. The server continues the run by itself once the account is connected, so no request
// brings the key again. An item next to the thread, deleted with it.

import { z } from "zod";
import type { ItemStore, Shelf } from "../../agent/core/items.ts";
import type { Claim } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { RunObserver } from "./services.ts";

const KEY = "waiting_key";
const shelfOf = (owner: Owner, thread: string): Shelf => ({ owner, of: { thread }, kind: "settings" });
const WaitingKey = z.object({ api_key: z.string() });

/** Keeps the key before the question is shown. */
export const keepsWaitingKey = (
  items: ItemStore,
  { lease: { owner, thread_id }, request: { api_key } }: Claim,
): RunObserver => ({
  beforeWrite(event) {
    if (event.event !== "on_interrupt" || event.data.kind !== "connect") return undefined;
    const shelf = shelfOf(owner, thread_id);
    // An earlier run of the thread may have had one.
    if (api_key === undefined) return items.delete(shelf, KEY).then(() => {});
    const value = { api_key } satisfies z.infer<typeof WaitingKey>;
    return items.put(shelf, { key: KEY, value }).then(() => {});
  },
});

/** The key with which the run began that asked last; undefined if it began without one. */
export async function waitingKeyOf(
  items: ItemStore,
  owner: Owner,
  thread: string,
): Promise<string | undefined> {
  return WaitingKey.safeParse((await items.get(shelfOf(owner, thread), KEY))?.value).data?.api_key;
}
