// The records of API keys, asked for once in a few seconds instead of with every request.

import type { ApiKeyStore, KeptApiKey } from "./api-keys.ts";

/** How old an answer may be, in ms: for as long a key may work after it was revoked. */
const FRESH_MS = 3_000;
/** Of each kind. At the bound the oldest goes, and is asked for again when it is needed. */
const MAX_FOUND = 10_000;
const MAX_MISSING = 1_000;

interface Answer {
  readonly key: KeptApiKey | undefined;
  readonly asked: number;
}

/** Finds a record by its id. Who asks for the same one at once gets the same answer. Throws what the store throws. */
export function cachedKeys(store: ApiKeyStore, now: () => number): ApiKeyStore["find"] {
  // Ids that somebody makes up must not drive out those that are in use.
  const found = new Map<string, Answer>();
  const missing = new Map<string, Answer>();
  const asking = new Map<string, Promise<KeptApiKey | undefined>>();

  return async (id) => {
    const known = found.get(id) ?? missing.get(id);
    if (known && isFresh(known)) return known.key;
    const asked = asking.get(id) ?? ask(id).finally(() => asking.delete(id));
    asking.set(id, asked);
    return asked;
  };

  async function ask(id: string): Promise<KeptApiKey | undefined> {
    // An answer is as old as its question.
    const asked = now();
    const key = await store.find(id);
    found.delete(id);
    missing.delete(id);
    if (key) keep(found, { key, asked }, id, MAX_FOUND);
    else keep(missing, { key, asked }, id, MAX_MISSING);
    return key;
  }

  function isFresh({ asked }: Answer): boolean {
    const age = now() - asked;
    // A clock that was set back makes nothing fresh.
    return age >= 0 && age < FRESH_MS;
  }
}

function keep(answers: Map<string, Answer>, answer: Answer, id: string, most: number): void {
  const [oldest] = answers.keys();
  if (answers.size >= most && oldest !== undefined) answers.delete(oldest);
  answers.set(id, answer);
}
