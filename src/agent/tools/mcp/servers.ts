// The MCP servers of this process and their tools, named `mcp__<server>__<tool>`. All runs and users share the servers,
// which live as long as the process. The code that creates them must close them.

import { isDeepStrictEqual } from "node:util";
import type { Owner } from "../../../protocol/ids.ts";
import type { Tool } from "../../core/tool.ts";
import type { McpServerDefinition, McpServerDefinitions } from "./options.ts";
import { createOwnerServers, type OwnerServers } from "./owner-servers.ts";
import { McpServer, type McpServices } from "./server.ts";

export interface AbsentServer {
  readonly server: string;
  readonly why: string;
}

export interface McpServers {
  /**
   * Returns the most recently listed tools, sorted by name. This is cheap enough for every model call,
   * because it returns the same list until something changes.
   */
  tools(): readonly Tool[];
  /** Returns the currently unusable servers, each with a reason that completes "The server …". */
  absent(): readonly AbsentServer[];
  /**
   * Resolves when each of these servers (default: all) has listed its tools or failed to do so. Never
   * rejects.
   */
  listed(names?: readonly string[]): Promise<void>;
  /** Returns the names of the servers that each owner connects to with their own account. */
  ofOwners(): readonly string[];
  /**
   * Returns the definition of a server that owners connect to with their own account, or undefined for any
   * other server.
   */
  accountsAt: OwnerServers["definitionOf"];
  /**
   * Returns the tools of the servers that the owner connects to with their own account. See
   * `OwnerServers.toolsOf`.
   */
  toolsOf(owner: Owner, isNamed: (server: string) => boolean): Promise<readonly Tool[]>;
  /** Keeps servers with unchanged definitions, ends all others, and connects new ones. */
  replace(definitions: McpServerDefinitions): Promise<void>;
  /** Ends all servers and everything that they started. */
  close(): Promise<void>;
}

/** Creates the servers and returns at once. Servers connect in the background. */
export function createMcpServers(definitions: McpServerDefinitions, services: McpServices): McpServers {
  let servers: ReadonlyMap<string, McpServer> = new Map();
  let current: readonly Tool[] = [];
  let ended: Promise<unknown> = Promise.resolve();

  const ofOwners = createOwnerServers(services);

  const replace = async (next: McpServerDefinitions) => {
    const before = servers;
    ofOwners.replace(next);
    const isShared = ([, definition]: [string, McpServerDefinition]) =>
      !("per" in definition) || definition.per === undefined;
    const entries = Object.entries(next)
      .filter(isShared)
      .map(([name, definition]): [string, McpServer] => {
        const old = before.get(name);
        const isSame = old !== undefined && isDeepStrictEqual(old.definition, definition);
        return [name, isSame ? old : new McpServer(name, definition, services)];
      });
    servers = new Map(entries);
    for (const server of servers.values()) void server.tools();
    const kept = new Set(servers.values());
    const gone = [...before.values()].filter((each) => !kept.has(each));
    ended = Promise.all([ended, ...gone.map((each) => each.close())]);
    await ended;
  };
  void replace(definitions);

  return {
    tools() {
      const tools = [...servers.values()].flatMap((server) => server.tools());
      const isSame = tools.length === current.length && tools.every((tool, index) => tool === current[index]);
      if (!isSame) current = tools;
      return current;
    },
    absent: () =>
      [...servers].flatMap(([server, { absence: why }]) => (why === undefined ? [] : [{ server, why }])),
    async listed(names = [...servers.keys()]) {
      await Promise.all(names.map((name) => servers.get(name)?.listed()));
    },
    ofOwners: () => ofOwners.names(),
    accountsAt: ofOwners.definitionOf,
    toolsOf: ofOwners.toolsOf,
    replace,
    async close() {
      await Promise.all([replace({}), ofOwners.close()]);
    },
  };
}
