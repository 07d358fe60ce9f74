// The MCP servers of this process: other programs whose tools agents may name as `mcp__<server>__<tool>`. They
// live as long as the process does, for all runs and users alike; whoever makes them closes them.

import { isDeepStrictEqual } from "node:util";
import type { Tool } from "../../core/tool.ts";
import type { McpServerDefinitions } from "./options.ts";
import { McpServer, type McpServices } from "./server.ts";

export interface McpServers {
  /** What they listed last, each server's by name. Cheap: to be asked anew for each run. */
  tools(): readonly Tool[];
  /** Resolves when each server has listed its tools or could not. Never rejects. */
  listed(): Promise<void>;
  /** Keeps the servers whose definition is the same, ends the others, connects new ones. */
  replace(definitions: McpServerDefinitions): Promise<void>;
  /** Ends all of them, with everything they started. */
  close(): Promise<void>;
}

/** Returns at once; servers are connected in the background, and none that is not configured costs anything. */
export function createMcpServers(definitions: McpServerDefinitions, services: McpServices): McpServers {
  let servers: ReadonlyMap<string, McpServer> = new Map();
  let ended: Promise<unknown> = Promise.resolve();

  const replace = async (next: McpServerDefinitions) => {
    const before = servers;
    const entries = Object.entries(next).map(([name, definition]): [string, McpServer] => {
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
    tools: () => [...servers.values()].flatMap((server) => server.tools()),
    listed: async () => void (await Promise.all([...servers.values()].map((server) => server.listed()))),
    replace,
    close: () => replace({}),
  };
}
