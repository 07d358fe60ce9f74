// MCP servers that every user or tenant connects to with their own credentials. One owner's connection, including its list
// of tools, is never used for another owner.

import { LRUCache } from "lru-cache";
import type { Logger } from "../../../lib/logger.ts";
import { atMost } from "../../../lib/lru.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { ConnectionAccess, ConnectionKeeper, Connections } from "../../core/connections.ts";
import type { ToolCall } from "../../core/message.ts";
import { askTogether } from "../../core/open-interrupts.ts";
import { type Stream, toStream } from "../../core/stream.ts";
import { done, failed, interrupted, type Run, type Tool, type ToolResult } from "../../core/tool.ts";
import type { HttpServer, McpServerDefinitions } from "./options.ts";
import { isUnauthorized, McpServer, type McpServices, missingScopesIn } from "./server.ts";

/**
 * The maximum number of live connections in this process. Opening one more closes the connection that has
 * been unused for the longest time.
 */
const MAX_CONNECTED = 500;
/** The time after which an unused connection is closed, in ms. */
const IDLE_MS = 10 * 60_000;

export interface OwnerServers {
  /**
   * Returns the tools that the owner may use on the servers that `isNamed` selects. A server that the owner
   * has not connected offers only the tool `mcp__<server>__connect`. Never throws.
   */
  toolsOf(owner: Owner, isNamed: (server: string) => boolean): Promise<readonly Tool[]>;
  names(): readonly string[];
  /** Returns the definition of a server, or undefined if the server is not used with accounts. */
  definitionOf(server: string): OwnerServer | undefined;
  /** Replaces the definitions. Closes each connection once its calls have ended. */
  replace(definitions: McpServerDefinitions): void;
  close(): Promise<void>;
}

interface OwnerServices extends McpServices {
  readonly connections: () => Connections | undefined;
}

export type OwnerServer = HttpServer & { readonly per: NonNullable<HttpServer["per"]> };
type OpenAccess = Extract<ConnectionAccess, { readonly state: "open" }>;

/** A live connection of one owner with one token. */
interface Session {
  readonly server: McpServer;
  readonly generation: string;
}

/** Creates the servers. The caller closes them. */
export function createOwnerServers(services: OwnerServices): OwnerServers {
  const { logger } = services;
  let definitions: ReadonlyMap<string, OwnerServer> = new Map();
  const closing = new Set<Promise<void>>();
  const sessions = new LRUCache<string, Session>({
    ...atMost(MAX_CONNECTED),
    ...{ ttl: IDLE_MS, updateAgeOnGet: true, ttlAutopurge: true },
    dispose({ server }) {
      const ended = server.retire().finally(() => closing.delete(ended));
      closing.add(ended);
    },
  });
  const keyOf = ({ name, keeper: { tenant, user } }: ServerPlace) => JSON.stringify([name, tenant, user]);
  const open = (place: ServerPlace, { value, generation }: OpenAccess): McpServer => {
    const known = sessions.get(keyOf(place));
    if (known?.generation === generation) return known.server;
    const headers = { ...place.definition.headers, Authorization: `Bearer ${value}` };
    const server = new McpServer(place.name, { ...place.definition, headers }, services);
    sessions.set(keyOf(place), { server, generation });
    services.connections()?.used(place.keeper, place.name);
    return server;
  };
  const drop = (place: ServerPlace) => void sessions.delete(keyOf(place));
  const parts = { connections: services.connections, open, drop, logger };

  return {
    async toolsOf(owner, isNamed) {
      const named = [...definitions].filter(([name]) => isNamed(name));
      const tools = named.map(async ([name, definition]) => {
        const keeper = keeperOf(definition, owner);
        return toolsAt({ name, definition, keeper }, parts);
      });
      return (await Promise.all(tools)).flat();
    },
    names: () => [...definitions.keys()],
    definitionOf: (server) => definitions.get(server),
    replace(next) {
      const isOfOwners = (entry: [string, object]): entry is [string, OwnerServer] =>
        "per" in entry[1] && entry[1].per !== undefined;
      definitions = new Map(Object.entries(next).filter(isOfOwners));
      sessions.clear();
    },
    async close() {
      definitions = new Map();
      sessions.clear();
      await Promise.all(closing);
    },
  };
}

const keeperOf = ({ per }: OwnerServer, { tenant, user }: Owner): ConnectionKeeper =>
  per === "user" ? { tenant, user } : { tenant };

/** A server, and the owner of the account with which it is used. */
interface ServerPlace {
  readonly name: string;
  readonly definition: OwnerServer;
  readonly keeper: ConnectionKeeper;
}

interface AccountParts {
  readonly connections: () => Connections | undefined;
  open(place: ServerPlace, access: OpenAccess): McpServer;
  /** Closes the connection whose token was refused. */
  drop(place: ServerPlace): void;
  readonly logger: Logger;
}

async function toolsAt(place: ServerPlace, parts: AccountParts): Promise<readonly Tool[]> {
  const connect = connectTool(place, parts);
  try {
    const signal = AbortSignal.timeout(place.definition.connect_timeout);
    const session = await sessionAt(place, parts, { signal });
    if (session.state !== "open") return [connect];
    return [connect, ...session.server.tools().map((tool) => ownTool(tool, place, parts))];
  } catch (err) {
    const { name: server, keeper } = place;
    parts.logger.warn({ ...keeper, server, err }, "the account at an MCP server cannot be used");
    return [];
  }
}

/** An open connection whose server has listed its tools, or the reason why the owner has no connection. */
type OwnerSession =
  | { readonly state: "open"; readonly server: McpServer; readonly generation: string }
  | NoAccess;
type NoAccess = Exclude<ConnectionAccess, OpenAccess>;

/** Returns the owner's session. Renews a token once if the server refuses it. */
async function sessionAt(
  place: ServerPlace,
  parts: AccountParts,
  { refused, signal }: AccessOptions,
): Promise<OwnerSession> {
  const access = await accessTo(place, parts, { refused, signal });
  if (access.state !== "open") return access;
  const { generation } = access;
  const server = parts.open(place, access);
  await server.listed();
  if (!server.isRefused) return { state: "open", server, generation };
  parts.drop(place);
  if (refused !== undefined) return { state: "ended", reason: "the server refuses its token" };
  return sessionAt(place, parts, { refused: generation, signal });
}

type AccessOptions = Parameters<Connections["access"]>[2];

/**
 * Returns the owner's access to a server. A connection that was made for another address is not used, because
 * its token must not be sent to this server.
 */
async function accessTo(
  { name, definition, keeper }: ServerPlace,
  { connections }: AccountParts,
  options: AccessOptions,
): Promise<ConnectionAccess> {
  const access = (await connections()?.access(keeper, name, options)) ?? { state: "absent" };
  if (access.state !== "open") return access;
  const { mcp_server_url: url } = access.connection;
  const isSame = url !== undefined && new URL(url).href === new URL(definition.url).href;
  return isSame ? access : { state: "absent" };
}

/** Returns the server's tool. Each call uses the current token. */
function ownTool(tool: Tool, place: ServerPlace, parts: AccountParts): Tool {
  const call = (server: McpServer, ...rest: Parameters<Tool["execute"]>) => {
    const current = server.tools().find(({ name }) => name === tool.name) ?? tool;
    parts.connections()?.used(place.keeper, place.name);
    return toStream(current.execute(...rest));
  };
  return {
    ...tool,
    async *execute(args, toolCall, run) {
      const { signal } = run;
      let isAsked = false;
      for (let refused: string | undefined; ; ) {
        let session = await sessionAt(place, parts, { refused, signal });
        if (session.state !== "open") {
          const result = yield* askToConnect(place, session, { call: toolCall, run, ...parts });
          if (result) return result;
          session = await sessionAt(place, parts, { refused, signal });
          if (session.state !== "open") return failed(notConnected(place));
        }
        try {
          return yield* call(session.server, args, toolCall, run);
        } catch (error) {
          const scopes = missingScopesIn(error);
          if (scopes) {
            if (isAsked) return failed(notEnough(place));
            isAsked = true;
            const question = { call: toolCall, run, ...parts, scopes };
            const result = yield* askToConnect(place, NOT_ENOUGH, question);
            if (result) return result;
            continue;
          }
          if (!isUnauthorized(error)) throw error;
          parts.drop(place);
          if (refused !== undefined) return failed(`${notConnected(place)} It refuses the token.`);
          refused = session.generation;
        }
      }
    },
  };
}

const NOT_ENOUGH: NoAccess = { state: "ended", reason: "the call requires more rights than the account has" };
const notEnough = ({ name }: ServerPlace) =>
  `The account at MCP server \`${name}\` does not have enough rights for this call.`;
const notConnected = ({ name }: ServerPlace) => `The account at MCP server \`${name}\` is not connected.`;

/** Creates a tool that a model can use to ask for the account before any of the server's tools are known. */
function connectTool(place: ServerPlace, parts: AccountParts): Tool {
  const { name, definition } = place;
  const whose = definition.per === "user" ? "the user's" : "the tenant's";
  return {
    name: `mcp__${name}__connect`,
    description: `Asks to connect ${whose} account at \`${name}\`. Use it only if you need \`${name}\` and have none of its other tools. They become available afterwards.`,
    parameters: { type: "object", properties: {} },
    annotations: { readOnly: true, requiresPermission: false },
    parse: () => ({ args: {} }),
    async *execute(_, call, run) {
      const { signal } = run;
      const session = await sessionAt(place, parts, { signal });
      const connected = done(`The account at \`${name}\` is connected. Its tools are now available.`);
      if (session.state === "open") return connected;
      const result = yield* askToConnect(place, session, { call, run, ...parts });
      if (result) return result;
      const again = await sessionAt(place, parts, { signal });
      return again.state === "open" ? connected : failed(notConnected(place));
    },
  };
}

interface ConnectQuestion extends Pick<AccountParts, "connections"> {
  readonly call: ToolCall;
  readonly run: Run;
  /** The scopes that the token lacks. */
  readonly scopes?: readonly string[] | undefined;
}

/**
 * Asks a person to connect the account. Returns undefined once the person says that the account is connected.
 * Otherwise, returns the result of the call.
 */
async function* askToConnect(
  place: ServerPlace,
  access: NoAccess,
  { call, run, connections, scopes }: ConnectQuestion,
): Stream<ToolResult | undefined> {
  const { name, definition } = place;
  if (access.state === "failed")
    return failed(`The account at \`${name}\` cannot be used now: ${access.reason}.`);
  const why = access.state === "ended" ? ` The connection ended, because ${access.reason}.` : "";
  const whose = definition.per === "user" ? "your account" : "the tenant's account";
  const promptWith = (then: string) =>
    `Connect ${whose} at \`${name}\`${then}.${why} Deny to continue without it.`;
  const withAddress = async () => {
    const url = await addressFor(place, { connections, run, scopes });
    return url === undefined
      ? undefined
      : { url, prompt: promptWith(". The run continues by itself afterwards") };
  };
  const question = { call, kind: "connect" as const, prompt: promptWith(", then approve"), withAddress };
  const answer = yield* askTogether(question, run, `mcp__${name}__`);
  if (!answer) return interrupted();
  if (answer.decision === "approve") return undefined;
  const words = `The account at \`${name}\` was not connected. Continue without it, and do not ask again.`;
  return { ...done(answer.message ? `${words} ${answer.message}` : words), denied: true };
}

/**
 * Returns the address for connecting an account. Only admins may connect a tenant's account, so its address
 * is not shown to the run's user.
 */
async function addressFor(
  { name, definition, keeper: { tenant } }: ServerPlace,
  { connections, run: { owner, interrupts }, scopes = [] }: Omit<ConnectQuestion, "call">,
): Promise<string | undefined> {
  if (definition.per !== "user" || !definition.auth) return undefined;
  const lifetimeMs = interrupts.expiresAfterMs;
  return connections()?.addressFor?.({ tenant, user: owner.user }, name, { lifetimeMs, scopes });
}
