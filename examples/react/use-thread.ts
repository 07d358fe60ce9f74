// A React hook for a thread, built only on the store of `skein/client/thread`. You can copy it.

import { useMemo, useSyncExternalStore } from "react";
import type { Client } from "../../src/client/client.ts";
import { openThread } from "../../src/client/thread.ts";

/** Returns the current thread and the actions on it. Follows the thread while the component is mounted. */
export function useThread(client: Client, threadId: string) {
  const store = useMemo(() => openThread(client, threadId), [client, threadId]);
  const { subscribe, getSnapshot, ...actions } = store;
  return { ...useSyncExternalStore(subscribe, getSnapshot, getSnapshot), ...actions };
}
