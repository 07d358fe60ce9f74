// The vault stores the credentials of users and tenants for other services. Requests can write them but never read
// them. Tools receive the current secret of their run's owner.

import { type ClaimedDocument, finish } from "../../agent/core/document-claims.ts";
import type { Documents } from "../../agent/core/documents.ts";
import type { KeyWrapper } from "../../agent/core/key-wrapper.ts";
import type { Page } from "../../agent/core/stores.ts";
import { atMost } from "../../lib/async.ts";
import type { Logger } from "../../lib/logger.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { PublicFetch } from "../../lib/ssrf-safe-fetch/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createDueWorker, type DueWorker } from "../due-worker.ts";
import { type Accesses, createAccesses } from "./access.ts";
import { type Cipher, createCipher, UnreadableSecret } from "./cipher.ts";
import { type ConnectionStore, createConnectionStore, nextLook } from "./connection-store.ts";
import { contextOf, type Keeper, keptIn } from "./credential.ts";
import { type Deletion, type DeletionParts, deletionFrom, revocableIn } from "./delete.ts";
import { isUnderWay } from "./oauth/end-grants.ts";
import { createRevocations, type Revoke } from "./revoke.ts";
import { createIssuer, isClientUnknown } from "./token-endpoint.ts";
import { createUses, type Uses } from "./uses.ts";

export interface VaultOptions {
  readonly documents: Documents;
  readonly logger: Logger;
  /** The key that protects new secrets. */
  readonly key: KeyWrapper;
  /** Keys whose secrets can still be read. Within two days, the vault protects those secrets with `key`. */
  readonly previousKeys: readonly KeyWrapper[];
  /** The maximum number of connections per user, and per tenant. */
  readonly most: number;
  /** Used for requests to authorization servers. */
  readonly fetch: PublicFetch;
  /** Called for each use of a connection. Must return at once and not throw. */
  onUse(keeper: Keeper, id: string): void;
  readonly onConsentsEnded: DeletionParts["onConsentsEnded"];
}

export interface Vault
  extends Pick<ConnectionStore, "put" | "get" | "list">,
    Pick<Accesses, "access">,
    Deletion {
  /**
   * Returns the client that the issuer of a connection no longer knows, if a person connected the account in a browser.
   */
  unknownClient(keeper: Keeper, id: string): Promise<string | undefined>;
  /** Records that the request with this id, from which the connection's credentials come, is over. */
  endRequest(keeper: Keeper, id: string, request: string): Promise<void>;
  /**
   * Deletes a connection and revokes its tokens, because the account or its user was deleted after a person had agreed
   * to the request from which its credentials come. Does nothing if that request is over. Returns true if the
   * connection still exists afterwards.
   */
  withdraw(keeper: Keeper, id: string, request: string): Promise<boolean>;
  /** Records that a value was sent to its receiver. Returns at once. */
  used(keeper: Keeper, id: string): void;
  /** Encrypts users' other secrets with the same keys. */
  readonly cipher: Cipher;
  /** Revokes tokens that are not in the vault. `close` waits for it, also if the caller does not. */
  readonly revoke: Revoke;
  /** The records to export and delete along with a user. */
  readonly records: {
    list(
      owner: Owner,
      page: { readonly limit: number; readonly cursor?: string | undefined },
    ): Promise<Page<object>>;
    /** Deletes a user's connections and revokes their tokens. Returns the number of connections. */
    deleteAll(owner: Owner): Promise<number>;
  };
  open(): void;
  /** Waits up to `CLOSING_MS` for renewals and revocations, because tokens that are not stored or revoked are lost. */
  close(): Promise<void>;
}

/** A user can name an issuer that never answers, which must not keep the server from stopping. In milliseconds. */
const CLOSING_MS = 5_000;

/** The caller must open it, and close it after everything that uses it. */
export function createVault(options: VaultOptions): Vault {
  const { documents, logger, key, previousKeys, most, fetch } = options;
  const cipher = createCipher(key, previousKeys);
  const store = createConnectionStore(documents, cipher, most);
  const issuer = createIssuer(fetch);
  const uses = createUses(documents, logger);
  const revocations = createRevocations(issuer, logger);
  const { revoke } = revocations;
  const accesses = createAccesses({ store, issuer, revoke, logger });
  const withdraw = withdrawalFrom(store, revoke);
  const worker = checker({ documents, cipher, withdraw, logger });

  return {
    put: store.put,
    ...readsOf(store, uses),
    access: accesses.access,
    ...{ cipher, revoke },
    used(keeper, id) {
      options.onUse(keeper, id);
      uses.note(keeper, id);
    },
    delete: deletionFrom({ ...options, store, cipher, uses, revoke }),
    async unknownClient(keeper, id) {
      const { kept } = await store.read(keeper, id);
      // A user can make an issuer refuse any client, with credentials of their own.
      const isRefused = kept?.request && kept.ended && isClientUnknown(kept.ended.reason);
      return isRefused ? kept.refresh?.client_id : undefined;
    },
    async endRequest(keeper, id, request) {
      await store.update(keeper, id, (before) =>
        before.request?.id === request ? { ...before, request: { id: request, isOver: true } } : undefined,
      );
    },
    withdraw,
    records: recordsOf(store, uses, revoke),
    open: () => worker.open(),
    async close() {
      await atMost(CLOSING_MS, Promise.all([worker.close(), accesses.close(), revocations.close()]));
      await uses.close();
    },
  };
}

function withdrawalFrom(store: ConnectionStore, revoke: Revoke): Vault["withdraw"] {
  return async (keeper, id, request) => {
    const kept = await store.withdraw(keeper, id, (each) => each.id === request && !each.isOver);
    if (!kept) return (await store.get(keeper, id)) !== undefined;
    void revoke(keeper, id, revocableIn(store, keeper, kept));
    return false;
  };
}

function readsOf(store: ConnectionStore, uses: Uses): Pick<Vault, "get" | "list"> {
  return {
    async get(keeper, id) {
      const found = await store.get(keeper, id);
      if (!found) return undefined;
      const [last_used_at] = await uses.of(keeper, [id]);
      return { ...found, connection: { ...found.connection, ...omitUndefined({ last_used_at }) } };
    },
    async list(keeper, page) {
      const { items, ...rest } = await store.list(keeper, page);
      const ids = items.map(({ id }) => id);
      const used = await uses.of(keeper, ids);
      const shown = items.map((each, at) => ({ ...each, ...omitUndefined({ last_used_at: used[at] }) }));
      return { ...rest, items: shown };
    },
  };
}

function recordsOf(store: ConnectionStore, uses: Uses, revoke: Revoke): Vault["records"] {
  return {
    async list(owner, page) {
      const { items, ...rest } = await store.list(owner, page);
      return { ...rest, items: items.map(({ type: credential, ...each }) => ({ credential, ...each })) };
    },
    async deleteAll(owner) {
      const revoking: Promise<boolean>[] = [];
      for await (const kept of store.deleteAll(owner))
        revoking.push(revoke(owner, kept.id, revocableIn(store, owner, kept)));
      await Promise.all(revoking);
      await uses.forgetAll(owner);
      return revoking.length;
    },
  };
}

const LEASE_MS = 30_000;
const EVERY_MS = 60_000;
const AT_ONCE = 4;

interface CheckerParts extends Pick<VaultOptions, "documents" | "logger"> {
  readonly cipher: Cipher;
  readonly withdraw: Vault["withdraw"];
}

/**
 * Returns a worker that checks every connection once a day and rewraps its data key unless the current key protects it.
 * It withdraws a connection sooner if a process stored it after its account was deleted, and then died.
 */
function checker({ documents, cipher, withdraw, logger }: CheckerParts): DueWorker {
  const work = async (claimed: ClaimedDocument) => {
    const kept = keptIn(claimed.body);
    const { tenant, user } = claimed.collection;
    const keeper = user === undefined ? { tenant } : { tenant, user };
    if (kept.request && !kept.request.isOver && !(await isUnderWay(documents, keeper, kept.request.id))) {
      await withdraw(keeper, kept.id, kept.request.id);
      logger.info({ tenant, user, connection: kept.id }, "deleted an account whose consent was deleted");
      return;
    }
    await finish(documents, claimed, {
      body: await rewrapped(keeper, claimed.body),
      due: nextLook(kept, claimed.now),
    });
  };
  /** Returns the connection with its data key under the current key. Logs if no key can decrypt it. */
  const rewrapped = async (keeper: Keeper, body: string): Promise<string> => {
    const kept = keptIn(body);
    if (cipher.isCurrent(kept.sealed)) return body;
    try {
      return JSON.stringify({
        ...kept,
        sealed: await cipher.rewrap(kept.sealed, contextOf(keeper, kept.id)),
      });
    } catch (err) {
      if (!(err instanceof UnreadableSecret)) throw err;
      logger.error({ ...keeper, connection: kept.id, err }, "a connection cannot be decrypted");
      return body;
    }
  };
  const times = { leaseMs: LEASE_MS, everyMs: EVERY_MS, atOnce: AT_ONCE };
  return createDueWorker(documents, { kind: "connections", work, ...times }, logger);
}
