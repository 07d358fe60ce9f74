// A thread in React: the store of `skein/client/thread`, and nothing else. Copy it.

import { useMemo, useSyncExternalStore } from "react";
import type { Client } from "../../src/client/client.ts";
import { openThread } from "../../src/client/thread.ts";

/** The thread as it is now, and what can be done with it. It is followed while the component is mounted. */
export function useThread(client: Client, threadId: string) {
  const store = useMemo(() => openThread(client, threadId), [client, threadId]);
  const { subscribe, getSnapshot, ...actions } = store;
  return { ...useSyncExternalStore(subscribe, getSnapshot, getSnapshot), ...actions };
}
