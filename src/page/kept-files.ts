// Files of unsent messages. They are stored in IndexedDB, next to their drafts, because they are too large for
// localStorage. If there is no storage, they last as long as the tab.

import type { Part } from "../client/client.ts";

export interface KeptFile {
  readonly part: Part;
  readonly name: string;
}

interface StoredFiles {
  readonly place: string;
  readonly files: readonly KeptFile[];
  readonly at: number;
}

const DATABASE = "skein";
const FILES = "files";
/** The maximum number of messages with files in this browser. A new message replaces the oldest one. */
const MAX_KEPT = 10;

export async function keptFiles(place: string): Promise<readonly KeptFile[]> {
  const found = await within("readonly", (store) => store.get(place));
  return (found as StoredFiles | undefined)?.files ?? [];
}

export async function keepFiles(place: string, files: readonly KeptFile[]): Promise<void> {
  if (files.length === 0) {
    await within("readwrite", (store) => store.delete(place));
    return;
  }
  const kept: StoredFiles = { place, files, at: Date.now() };
  await within("readwrite", (store) => store.put(kept));
  const places = await within("readonly", (store) => store.index("at").getAllKeys());
  for (const oldest of places?.slice(0, -MAX_KEPT) ?? [])
    await within("readwrite", (store) => store.delete(oldest));
}

/** Deletes the files under all keys with this prefix. */
export async function forgetFiles(prefix: string): Promise<void> {
  await within("readwrite", (store) => store.delete(IDBKeyRange.bound(prefix, `${prefix}\uffff`)));
}

/** Returns undefined if the browser provides no storage. */
async function within<T>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest<T>,
): Promise<T | undefined> {
  try {
    const database = await opened();
    try {
      return await answer(work(database.transaction(FILES, mode).objectStore(FILES)));
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}

async function opened(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () =>
    request.result.createObjectStore(FILES, { keyPath: "place" }).createIndex("at", "at");
  return answer(request);
}

const answer = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
