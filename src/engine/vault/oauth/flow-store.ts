// Stores requests to connect an account, from the time an address is created until the tokens are in the vault. Uses
// the documents port. The keys of addresses are stored as digests, and secrets are encrypted.

import { hash, randomBytes } from "node:crypto";
import {
  change,
  type Document,
  type Documents,
  type ListedCollection,
  newVersion,
  type OwnedCollection,
  remove,
  take,
} from "../../../agent/core/documents.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { Keeper } from "../credential.ts";
import type { OAuthClient } from "./client-id.ts";

/** A request to connect an account. All times are in milliseconds since 1970, by the store's clock. */
export interface ConnectRequest {
  readonly id: string;
  readonly server: string;
  /** The user who made the request and who owns its address. */
  readonly by: string;
  /** The tenant of that user, if an operator connects the account of another tenant. */
  readonly by_tenant?: string;
  /** The digest of the key in the request's address. */
  readonly key: string;
  /** Scopes to request in addition to those from the server and the settings. */
  readonly scopes: readonly string[];
  readonly created_at: number;
  readonly expires_at: number;
  /** How many times a person continued to the authorization server. */
  readonly begun: number;
  readonly flow?: Flow;
  /** Set once the tokens have arrived. */
  readonly grant?: Grant;
}

/** A person's last visit to the authorization server. */
export interface Flow {
  /** The digest of `state`. */
  readonly state: string;
  /** The digest of the browser's cookie. */
  readonly browser: string;
  readonly until: number;
  /** Set once the browser has returned. */
  readonly isUsed?: true;
  readonly issuer: string;
  readonly isIssRequired: boolean;
  readonly token_endpoint: string;
  readonly revocation_endpoint?: string;
  readonly resource: string;
  readonly scope?: string;
  /** The public URL of this server. */
  readonly base: string;
  readonly client_id: string;
  readonly auth: OAuthClient["auth"];
  /** Encrypted `FlowSecrets`. */
  readonly sealed: string;
}

export interface FlowSecrets {
  readonly verifier: string;
  readonly client_secret?: string | undefined;
}

export interface Grant {
  readonly at: number;
  /** The encrypted connection, until it is in the vault. */
  readonly sealed?: string;
}

export const KIND = "connects";
const requestsOf = ({ tenant, user }: Keeper): OwnedCollection =>
  user === undefined ? { kind: KIND, tenant } : { kind: KIND, tenant, user };
const PLACES: ListedCollection = { kind: "connect_places" };

/**
 * The maximum number of requests per user, and per tenant. Creating another one deletes the oldest, but not one with a
 * grant while others are left, because the runs that wait for its account would not continue.
 */
const MAX_REQUESTS = 50;
/** How long a process has for each step of a request with a grant, in milliseconds. */
export const LEASE_MS = 30_000;
/** The maximum lifetime of a request, in milliseconds. */
export const MAX_LIFETIME_MS = 7 * 86_400_000;

export const digestOf = (secret: string) => hash("sha256", secret, "base64url");
export const newSecret = () => randomBytes(32).toString("base64url");
/** Binds an encrypted secret to its request. */
export const contextOf = ({ tenant, user }: Keeper, id: string, what: "flow" | "grant") =>
  JSON.stringify(["connects", tenant, user ?? null, id, what]);

// Not validated, because only this file writes it.
export const requestIn = (body: string) => JSON.parse(body) as ConnectRequest;
const placeIn = (body: string) => JSON.parse(body) as Keeper & { readonly id: string };

export interface FoundRequest {
  readonly keeper: Keeper;
  readonly request: ConnectRequest;
}

/** Returns the new state of a request, or undefined to change nothing. */
type Update = (before: ConnectRequest, now: number) => ConnectRequest | undefined;

export interface FlowStore {
  /** Creates a request. Returns the request and the key of its address. */
  create(
    keeper: Keeper,
    request: Pick<ConnectRequest, "server" | "by" | "by_tenant" | "scopes"> & { readonly lifetimeMs: number },
  ): Promise<{ readonly request: ConnectRequest; readonly key: string }>;
  /** Returns the request with this key or state, even if it has expired. */
  at(secret: string): Promise<(FoundRequest & { readonly now: number }) | undefined>;
  /** Stores a state, so that the state can be used to find the request. */
  place(keeper: Keeper, id: string, stateDigest: string): Promise<void>;
  /** Deletes a stored state. */
  displace(stateDigest: string): Promise<void>;
  /**
   * Writes what `update` returns. Returns the written request and its version. By default, `due` is the time at which
   * the request expires.
   */
  update(
    keeper: Keeper,
    id: string,
    update: Update,
    dueIn?: number,
  ): Promise<
    { readonly request: ConnectRequest; readonly version: string; readonly now: number } | undefined
  >;
  list(keeper: Keeper): Promise<readonly ConnectRequest[]>;
  /** Deletes a request and returns its last state, or undefined if it does not exist. */
  delete(keeper: Keeper, request: ConnectRequest): Promise<ConnectRequest | undefined>;
  /** Removes the keys that lead to a request. */
  unplace(request: ConnectRequest): Promise<void>;
  /** Removes keys of requests that a process left behind. */
  sweep(): Promise<void>;
}

/** Sorts requests whose person has consented last, and otherwise the oldest first. */
const byUse = (a: ConnectRequest, b: ConnectRequest) =>
  progressOf(a) - progressOf(b) || a.created_at - b.created_at;
const progressOf = ({ grant, flow }: ConnectRequest) => (grant ? 2 : flow?.isUsed ? 1 : 0);

export function createFlowStore(documents: Documents): FlowStore {
  const place = async (keeper: Keeper, id: string, digest: string) => {
    const write = { key: digest, seen: undefined, body: JSON.stringify({ ...keeper, id }) };
    await documents.write(PLACES, [write], { version: newVersion() });
  };
  const displace = async (digest: string) => void (await remove(documents, PLACES, digest));
  const unplace = async ({ key, flow }: ConnectRequest) => {
    for (const each of [key, ...(flow ? [flow.state] : [])]) await displace(each);
  };
  const deleteOne = async (keeper: Keeper, request: ConnectRequest) => {
    // If the store fails in between, a repetition still finds the request and its grant. `sweep` deletes a state that a
    // person has added meanwhile.
    await unplace(request);
    const document = await take(documents, requestsOf(keeper), request.id);
    return document && requestIn(document.body);
  };
  const list = async (keeper: Keeper) =>
    (await documents.list(requestsOf(keeper))).map(({ body }) => requestIn(body));

  return {
    ...{ place, displace, unplace, delete: deleteOne, list },
    async create(keeper, { lifetimeMs, ...about }) {
      const old = (await list(keeper)).sort(byUse);
      for (const each of old.slice(0, Math.max(0, old.length - MAX_REQUESTS + 1)))
        await deleteOne(keeper, each);
      const [id, key] = [randomId(), newSecret()];
      await place(keeper, id, digestOf(key));
      const request = await change(documents, { collection: requestsOf(keeper), keys: [id] }, ({ now }) => {
        const times = { created_at: now, expires_at: now + lifetimeMs };
        const made: ConnectRequest = { id, ...about, key: digestOf(key), ...times, begun: 0 };
        return { writes: [writeOf(made, undefined, made.expires_at)], result: made };
      });
      return { request, key };
    },
    async at(secret) {
      const digest = digestOf(secret);
      const [found] = (await documents.read(PLACES, [digest])).found;
      if (!found) return undefined;
      const { id, ...keeper } = placeIn(found.body);
      const { found: requests, now } = await documents.read(requestsOf(keeper), [id]);
      const request = requests[0] && requestIn(requests[0].body);
      const isIts = request?.key === digest || request?.flow?.state === digest;
      return request && isIts ? { keeper, request, now } : undefined;
    },
    update: (keeper, id, update, dueIn) =>
      change(
        documents,
        { collection: requestsOf(keeper), keys: [id] },
        ({ found: [found], now, version }) => {
          const request = found && update(requestIn(found.body), now);
          if (!request) return { result: undefined };
          // A person may still be at the authorization server when the address expires.
          const end = Math.max(request.expires_at, request.flow?.until ?? 0);
          const due = dueIn === undefined ? end : now + dueIn;
          return { writes: [writeOf(request, found, due)], result: { request, version, now } };
        },
      ),
    async sweep() {
      await documents.trim(PLACES, { ms: 2 * MAX_LIFETIME_MS });
    },
  };
}

export const writeOf = (request: ConnectRequest, found: Document | undefined, due: number) => ({
  ...{ key: request.id, seen: found?.version, body: JSON.stringify(request), due },
});

export const requestCollection = requestsOf;
