// Stores the API key of a run that is waiting for a person to connect an account. Once the account is connected, the
// server continues the run without a request, so no request contains the key again. The key is an item of the thread
// and is deleted with the thread.

import { z } from "zod";
import type { ItemStore, Shelf } from "../../agent/core/items.ts";
import type { Claim } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { RunObserver } from "./services.ts";

const KEY = "waiting_key";
const shelfOf = (owner: Owner, thread: string): Shelf => ({ owner, of: { thread }, kind: "settings" });
const WaitingKey = z.object({ api_key: z.string() });

/** Stores the API key before the question is shown. */
export const keepsWaitingKey = (
  items: ItemStore,
  { lease: { owner, thread_id }, request: { api_key } }: Claim,
): RunObserver => ({
  beforeWrite(event) {
    if (event.event !== "on_interrupt" || event.data.kind !== "connect") return undefined;
    const shelf = shelfOf(owner, thread_id);
    // An earlier run of the thread may have stored a key.
    if (api_key === undefined) return items.delete(shelf, KEY).then(() => {});
    const value = { api_key } satisfies z.infer<typeof WaitingKey>;
    return items.put(shelf, { key: KEY, value }).then(() => {});
  },
});

/** Returns the API key that started the run that asked most recently, or undefined if the run started without a key. */
export async function waitingKeyOf(
  items: ItemStore,
  owner: Owner,
  thread: string,
): Promise<string | undefined> {
  return WaitingKey.safeParse((await items.get(shelfOf(owner, thread), KEY))?.value).data?.api_key;
}
