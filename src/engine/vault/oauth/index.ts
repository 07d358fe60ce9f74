// Connects accounts at MCP servers through OAuth. A person opens an address of this server, agrees at the authorization
// server and returns. The tokens then go into the vault, and the runs that wait for the account continue. Any process
// can take the next step.

import type { ClaimedDocument } from "../../../agent/core/document-claims.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { createDueWorker, type DueWorker } from "../../due-worker.ts";
import type { Keeper } from "../credential.ts";
import { createIssuer } from "../token-endpoint.ts";
import { beginFlow } from "./begin.ts";
import { createClientIds } from "./client-id.ts";
import { complete } from "./complete.ts";
import { type AccountServer, discover } from "./discovery.ts";
import { revocableGrant } from "./end-grants.ts";
import { createFlowStore, digestOf, KIND, LEASE_MS, MAX_LIFETIME_MS, requestIn } from "./flow-store.ts";
import { type Consent, keepGrant } from "./grant.ts";
import {
  BEGIN_MS,
  baseOf,
  type FlowParts,
  gone,
  type OAuthOptions,
  openRequest,
  type ShownRequest,
  shownOf,
} from "./parts.ts";
import { createFlowRequests } from "./requests.ts";

export interface OAuth extends Pick<DueWorker, "open" | "close"> {
  /**
   * Creates an address at which a person can connect an account within ten minutes. Throws `not_found` for a server
   * without accounts, `invalid_request` for one without OAuth, and `unavailable` if its authorization server cannot be
   * used.
   */
  authorize(
    keeper: Keeper,
    asked: { readonly server: string; readonly by: Owner; readonly signal: AbortSignal },
  ): Promise<{ readonly url: string; readonly expires_at: string }>;
  /** Returns the address for a run's question; see `Connections.addressFor`. */
  addressFor(
    keeper: Required<Keeper>,
    server: string,
    options: { readonly scopes?: readonly string[]; readonly lifetimeMs?: number | undefined },
  ): Promise<string | undefined>;
  /**
   * Returns the servers at which the keeper can connect an account but has not done so. Empty if this server has no
   * address for browsers.
   */
  notConnected(keeper: Keeper): Promise<readonly { readonly id: string; readonly mcp_server_url: string }[]>;
  /** Returns the request of an address. Throws `not_found` if the address is unknown, expired or used. */
  shown(key: string): Promise<ShownRequest>;
  /**
   * Returns the URL of the authorization server to which the browser must be sent. Throws `not_found` or `unavailable`.
   */
  begin(key: string, browser: string, signal: AbortSignal): Promise<string>;
  /** Returns the request with this state. Throws `not_found` if the state is unknown or expired. */
  of(state: string): Promise<ShownRequest>;
  /**
   * Processes the authorization server's answer. Throws an `AppError` with a message for the person. The only text of
   * the answer that the error can contain is its error code, in `details.reason`.
   */
  finish(consent: Consent): Promise<ShownRequest>;
  /** Returns the public URL of this server. */
  readonly base: () => string | undefined;
  /** The records to export and delete along with a user. */
  readonly records: {
    list(owner: Owner): Promise<{ readonly items: object[] }>;
    deleteAll(owner: Owner): Promise<number>;
  };
}

/** The lifetime of an address that an API request creates, in milliseconds. */
const ADDRESS_MS = 10 * 60_000;
const EVERY_MS = 5_000;
const AT_ONCE = 4;

function partsOf(options: OAuthOptions): FlowParts {
  const { documents, vault, allow } = options;
  const requests = (server: AccountServer, signal: AbortSignal) =>
    createFlowRequests(server.url, allow, signal);
  const issuer = createIssuer(options.fetch);
  return {
    ...options,
    store: createFlowStore(documents),
    clients: createClientIds({ documents, cipher: vault.cipher, requests }),
    ...{ issuer, requests },
  };
}

/** The caller must open and close it. */
export function createOAuth(options: OAuthOptions): OAuth {
  const { documents, logger } = options;
  const parts = partsOf(options);
  const { store, requests } = parts;
  const work = async (claimed: ClaimedDocument) => void (await complete(parts, claimed));
  const worker = createDueWorker(
    documents,
    { kind: KIND, work, leaseMs: LEASE_MS, everyMs: EVERY_MS, atOnce: AT_ONCE },
    logger,
  );

  return {
    open: () => worker.open(),
    close: () => worker.close(),
    base: options.base,
    async authorize(keeper, { server: name, by, signal }) {
      const server = oauthServer(options, keeper, name);
      const base = baseOf(options);
      const both = AbortSignal.any([signal, AbortSignal.timeout(BEGIN_MS)]);
      // Discovers the issuer now, so the caller sees any problem at once.
      const { issuer } = await discover(server, requests(server, both));
      await parts.clients.clientFor(server, issuer, base, both);
      const by_tenant = by.tenant === keeper.tenant ? undefined : by.tenant;
      const asker = { by: by.user, ...omitUndefined({ by_tenant }) };
      const about = { server: name, ...asker, scopes: [], lifetimeMs: ADDRESS_MS };
      const { request, key } = await store.create(keeper, about);
      return { url: addressOf(base, key), expires_at: new Date(request.expires_at).toISOString() };
    },
    async addressFor(keeper, server, { scopes = [], lifetimeMs = MAX_LIFETIME_MS }) {
      const base = options.base();
      if (base === undefined || !options.serverOf(server)) return undefined;
      const about = { server, by: keeper.user, scopes, lifetimeMs: Math.min(lifetimeMs, MAX_LIFETIME_MS) };
      const { key } = await store.create(keeper, about);
      return addressOf(base, key);
    },
    notConnected: (keeper) => notConnected(options, keeper),
    async shown(key) {
      return shownOf(await openRequest(store, key));
    },
    async of(state) {
      const found = await store.at(state);
      if (found?.request.flow?.state !== digestOf(state)) throw gone();
      return shownOf(found);
    },
    begin: (key, browser, signal) => beginFlow(parts, key, browser, signal),
    async finish(consent) {
      const { keeper, claimed } = await keepGrant(parts, consent, LEASE_MS);
      const outcome = await complete(parts, claimed);
      if (outcome) throw outcome;
      return shownOf({ keeper, request: requestIn(claimed.body) });
    },
    records: recordsOf(parts),
  };
}

const recordsOf = ({ store, vault }: FlowParts): OAuth["records"] => ({
  async list(owner) {
    const all = await store.list(owner);
    const items = all.map(({ id, server, created_at }) => ({
      ...{ id, server },
      created_at: new Date(created_at).toISOString(),
    }));
    return { items };
  },
  async deleteAll(owner) {
    const all = await store.list(owner);
    const revoking: Promise<boolean>[] = [];
    for (const each of all) {
      // The tokens may have arrived since the list was read.
      const { id, server, grant: { sealed } = {} } = (await store.delete(owner, each)) ?? each;
      // These tokens are not in the vault, which revokes only its own.
      if (sealed !== undefined)
        revoking.push(vault.revoke(owner, server, revocableGrant(vault.cipher, owner, { id, sealed })));
    }
    await Promise.all(revoking);
    return all.length;
  },
});

const addressOf = (base: string, key: string) => `${base}/oauth/start?key=${key}`;

async function notConnected({ base, servers, vault }: OAuthOptions, keeper: Keeper) {
  if (base() === undefined) return [];
  const all = servers().filter(({ per }) => per === perOf(keeper));
  const connected = await Promise.all(all.map(({ name }) => vault.get(keeper, name)));
  return all.flatMap(({ name, url }, at) => (connected[at] ? [] : [{ id: name, mcp_server_url: url }]));
}

const perOf = ({ user }: Keeper) => (user === undefined ? "tenant" : "user");

function oauthServer(
  { serverOf }: Pick<OAuthOptions, "serverOf">,
  keeper: Keeper,
  name: string,
): AccountServer {
  const server = serverOf(name);
  if (server && server.per === perOf(keeper)) return server;
  throw new AppError(
    "invalid_request",
    `The server cannot connect account \`${name}\` by OAuth: agents.yaml has no such MCP server with \`per: ${perOf(keeper)}\` and \`auth\`. Send credentials instead.`,
  );
}
