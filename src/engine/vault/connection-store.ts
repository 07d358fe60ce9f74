// Stores connections using the documents port. Secrets are encrypted before they are written and decrypted only here.

import {
  change,
  type Document,
  type Documents,
  type DocumentWrite,
  take,
} from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Cipher } from "./cipher.ts";
import {
  type Connection,
  type ConnectionSpec,
  connectionInfo,
  connectionsOf,
  contextOf,
  type Keeper,
  type KeptConnection,
  keptIn,
  type Secrets,
  splitSpec,
  tokenTimes,
} from "./credential.ts";

/** A connection as readers see it, with the version of its document. */
export interface VersionedConnection {
  readonly connection: Connection;
  readonly version: string;
}

/**
 * Throws `precondition_failed` unless the caller can replace this version. Undefined means that the connection does not
 * exist.
 */
export type Precondition = (version: string | undefined) => void;

export interface ConnectionStore {
  /** Creates or replaces a connection. Throws `limit_exceeded` and the errors of `precondition`. */
  put(
    keeper: Keeper,
    id: string,
    spec: ConnectionSpec,
    options?: PutOptions,
  ): Promise<VersionedConnection & PutOutcome>;
  get(keeper: Keeper, id: string): Promise<VersionedConnection | undefined>;
  /** Returns the connections, sorted by id. */
  list(keeper: Keeper, page: PageQuery): Promise<Page<Connection>>;
  /** Deletes and returns a connection. Throws the errors of `precondition`. */
  delete(keeper: Keeper, id: string, precondition?: Precondition): Promise<KeptConnection | undefined>;
  /** Deletes all connections of a user, and yields each as soon as it is deleted, because its tokens are then known nowhere else. */
  deleteAll(keeper: Keeper): AsyncGenerator<KeptConnection>;
  /** Deletes a connection if `isMeant` returns true for the request from which its credentials come. Returns it. */
  withdraw(
    keeper: Keeper,
    id: string,
    isMeant: (request: RequestOf) => boolean,
  ): Promise<KeptConnection | undefined>;

  read(
    keeper: Keeper,
    id: string,
  ): Promise<{ readonly kept: KeptConnection | undefined; readonly now: number }>;
  /**
   * Replaces a connection with the result of `update`, and returns the new connection. If `update` returns undefined,
   * writes nothing.
   */
  update(keeper: Keeper, id: string, update: Update): Promise<KeptConnection | undefined>;
  seal(keeper: Keeper, id: string, secrets: Secrets): Promise<string>;
  /** Throws an `UnreadableSecret`. */
  secretsOf(keeper: Keeper, kept: KeptConnection): Promise<Secrets>;
}

type RequestOf = NonNullable<KeptConnection["request"]>;

interface PutOutcome {
  readonly isNew: boolean;
  /** True if the connection was left unchanged because its credentials were chosen later. */
  readonly isLate: boolean;
}

export interface PutOptions {
  readonly precondition?: Precondition;
  /**
   * The id of the request that a person agreed to, and the time of the agreement in milliseconds. A connection that
   * already has the credentials of this request is left unchanged, because they may have been renewed since. The same
   * applies to a connection whose credentials were chosen later.
   */
  readonly request?: { readonly id: string; readonly at: number };
}

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** `now` is the store's time, in milliseconds since 1970. */
type Update = (before: KeptConnection, now: number) => KeptConnection | undefined;

/** How often the vault checks each connection: once a day. */
const LOOK_MS = 24 * 3_600_000;
/** How often it checks a connection whose request is not over. */
const LOOK_SOON_MS = 60_000;

/** `most` is the maximum number of connections per user, and per tenant. */
export function createConnectionStore(documents: Documents, cipher: Cipher, most: number): ConnectionStore {
  const seal = (keeper: Keeper, id: string, secrets: Secrets) =>
    cipher.seal(JSON.stringify(secrets), contextOf(keeper, id));

  return {
    seal,
    async secretsOf(keeper, { id, sealed }) {
      // Not validated, because only `seal` writes it.
      return JSON.parse(await cipher.open(sealed, contextOf(keeper, id))) as Secrets;
    },
    put: putIn(documents, seal, most),
    async get(keeper, id) {
      const [found] = (await documents.read(connectionsOf(keeper), [id])).found;
      return found && { connection: connectionInfo(keptIn(found.body)), version: found.version };
    },
    async list(keeper, page) {
      const { items, ...rest } = await documents.page(connectionsOf(keeper), { order: "key", ...page });
      return { ...rest, items: items.map(({ body }) => connectionInfo(keptIn(body))) };
    },
    delete: (keeper, id, precondition = () => {}) =>
      change(documents, { collection: connectionsOf(keeper), keys: [id] }, ({ found: [found] }) => {
        precondition(found?.version);
        if (!found) return { result: undefined };
        const writes = [{ key: id, seen: found.version, body: undefined }];
        return { writes, result: keptIn(found.body) };
      }),
    deleteAll: (keeper) => deletedOf(documents, keeper),
    withdraw: (keeper, id, isMeant) =>
      change(documents, { collection: connectionsOf(keeper), keys: [id] }, ({ found: [found] }) => {
        const kept = found && keptIn(found.body);
        if (!found || !kept?.request || !isMeant(kept.request)) return { result: undefined };
        return { writes: [{ key: id, seen: found.version, body: undefined }], result: kept };
      }),
    async read(keeper, id) {
      const { found, now } = await documents.read(connectionsOf(keeper), [id]);
      return { kept: found[0] && keptIn(found[0].body), now };
    },
    update: (keeper, id, update) =>
      change(documents, { collection: connectionsOf(keeper), keys: [id] }, ({ found: [found], now }) => {
        const next = found && update(keptIn(found.body), now);
        return next ? { writes: [writeOf(next, found, now)], result: next } : { result: undefined };
      }),
  };
}

/** How often the list is read again. A user with valid credentials could add connections forever. */
const MAX_LISTS = 3;

async function* deletedOf(documents: Documents, keeper: Keeper): AsyncGenerator<KeptConnection> {
  const collection = connectionsOf(keeper);
  for (let read = 0; read < MAX_LISTS; read++) {
    const all = await documents.list(collection);
    if (all.length === 0) return;
    for (const { key } of all) {
      // Not as listed: its tokens may have been replaced since.
      const document = await take(documents, collection, key);
      if (document) yield keptIn(document.body);
    }
  }
}

function putIn(documents: Documents, seal: ConnectionStore["seal"], most: number): ConnectionStore["put"] {
  const limit = { count: most, error: () => tooMany(most) };
  return async (keeper, id, spec, { precondition = () => {}, request } = {}) => {
    const { secrets, rest } = splitSpec(spec);
    const sealed = await seal(keeper, id, secrets);
    const generation = randomId();
    const at = { collection: connectionsOf(keeper), keys: [id], limit };
    return change(documents, at, ({ found: [found], now, version }) => {
      precondition(found?.version);
      const before = found && keptIn(found.body);
      const isSame = request !== undefined && before?.request?.id === request.id;
      const isLate = !isSame && request !== undefined && (before?.chosen_at ?? 0) > request.at;
      if (found && before && (isSame || isLate))
        return {
          result: { connection: connectionInfo(before), version: found.version, isNew: false, isLate },
        };
      const made = iso(now);
      const times = { created_at: before?.created_at ?? made, updated_at: made };
      const { expires_at } = rest;
      const ofToken = expires_at === undefined ? {} : tokenTimes(Date.parse(expires_at), now);
      const about = { id, ...rest, ...times, ...ofToken, chosen_at: request?.at ?? now };
      const kept: KeptConnection = {
        ...about,
        ...(request ? { request: { id: request.id } } : {}),
        ...{ sealed, generation },
      };
      const connection = connectionInfo(kept);
      const result = { connection, version, isNew: !before, isLate: false };
      return { writes: [writeOf(kept, found, now)], result };
    });
  };
}

function writeOf(kept: KeptConnection, found: Document | undefined, now: number): DocumentWrite {
  return { key: kept.id, seen: found?.version, body: JSON.stringify(kept), due: nextLook(kept, now) };
}

/** Returns the time of the vault's next check. */
export const nextLook = ({ request }: Pick<KeptConnection, "request">, now: number) =>
  now + (request && !request.isOver ? LOOK_SOON_MS : LOOK_MS);

const iso = (ms: number) => new Date(ms).toISOString();

const tooMany = (most: number) =>
  new AppError(
    "limit_exceeded",
    `There are already ${most} connections, the maximum (vault.connections). Delete one first.`,
    { details: { limit: "vault.connections", most } },
  );
