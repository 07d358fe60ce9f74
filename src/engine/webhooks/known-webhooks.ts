// Caches the webhooks of users and tenants, so an event of a tenant without webhooks does not read the store. The
// cached webhooks are at most a few seconds old.

import { LRUCache } from "lru-cache";
import { type Documents, type ListedCollection, newVersion } from "../../agent/core/documents.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import type { Logger } from "../../lib/logger.ts";
import { atMost } from "../../lib/lru.ts";
import type { Owner } from "../../protocol/ids.ts";
import { type Keeper, parsedWebhook, type Webhook, webhooksOf } from "./webhook.ts";

/** The tenants that have, or once had, webhooks. */
const TENANTS: ListedCollection = { kind: "webhook_tenants" };
/** The maximum age of the cached webhooks, in milliseconds. */
const KNOWN_MS = 5_000;
/** The maximum number of users and tenants whose webhooks are cached. */
const MAX_KNOWN = 10_000;
const COMPLAIN_MS = 60_000;

/** A webhook and its owner. */
export interface KnownWebhook {
  readonly keeper: Keeper;
  readonly webhook: Webhook;
}

export interface KnownWebhooks {
  /** Starts to keep track of the tenants that have webhooks. */
  open(): Promise<void>;
  close(): void;
  /** Call this before a tenant's first webhook is stored. */
  add(tenant: string): Promise<void>;
  /** Call this after a change to the keeper's webhooks. */
  forget(keeper: Keeper): void;
  /** Returns the webhooks of the user and of the tenant. Without `user`, returns only the tenant's webhooks. */
  of(owner: Keeper): Promise<readonly KnownWebhook[]>;
}

export function createKnownWebhooks(documents: Documents, logger: Logger): KnownWebhooks {
  const ready = new LRUCache<string, Promise<readonly KnownWebhook[]>>({
    ...atMost(MAX_KNOWN),
    ttl: KNOWN_MS,
  });
  /** Tenants that this process has added. A store read that began earlier does not include them. */
  const added = new Set<string>();
  let tenants: ReadonlySet<string> = added;
  let timer: NodeJS.Timeout | undefined;
  const complain = atMostEvery(COMPLAIN_MS, (err: unknown) =>
    logger.warn({ err }, "could not read which tenants have webhooks"),
  );
  const refresh = async () => {
    try {
      tenants = new Set([...(await documents.list(TENANTS)).map(({ body }) => body), ...added]);
    } catch (error) {
      complain(error);
    }
  };
  const keptBy = (keeper: Keeper): Promise<readonly KnownWebhook[]> => {
    const key = keyOf(keeper);
    const known = ready.get(key);
    if (known) return known;
    const reading = documents
      .list(webhooksOf(keeper))
      .then((found) => found.map(({ body }) => ({ keeper, webhook: parsedWebhook(body) })));
    ready.set(key, reading);
    reading.catch(() => {
      if (ready.peek(key) === reading) ready.delete(key);
    });
    return reading;
  };

  return {
    async open() {
      timer = setInterval(() => void refresh(), KNOWN_MS).unref();
      await refresh();
    },
    close: () => clearInterval(timer),
    async add(tenant) {
      if (tenants.has(tenant)) return;
      const key = Buffer.from(tenant).toString("base64url");
      const { found } = await documents.read(TENANTS, [key]);
      // Another process may write the same document first.
      if (!found[0])
        await documents.write(TENANTS, [{ key, seen: undefined, body: tenant }], { version: newVersion() });
      added.add(tenant);
      tenants = new Set([...tenants, tenant]);
    },
    forget: (keeper) => void ready.delete(keyOf(keeper)),
    async of({ tenant, user }) {
      if (!tenants.has(tenant)) return [];
      const both = [keptBy({ tenant }), ...(user === undefined ? [] : [keptBy({ tenant, user })])];
      return (await Promise.all(both)).flat();
    },
  };
}

const keyOf = ({ tenant, user }: Partial<Owner>) => JSON.stringify([tenant, user]);
