// The values of labels: a closed set that the configuration gives. Everything else is `other`.

/** The names that labels may have, as the configuration has them now. */
export interface KnownNames {
  isAgent(name: string): boolean;
  /** Whether the agents' file names it. */
  isModel(name: string): boolean;
  /** Whether a tool is the server's own, and not a tenant's or a front end's. */
  isOwnTool(name: string): boolean;
  isMcpServer(name: string): boolean;
}

export type Labels = ReturnType<typeof createLabels>;

export function createLabels(known: KnownNames) {
  return {
    agent: (name: string) => (known.isAgent(name) ? name : OTHER),
    model: (name: string) => (known.isModel(name) ? name : OTHER),
    /** Tools of an MCP server are one: the server lists them. */
    tool(name: string): string {
      const server = /^mcp__(.+?)__/.exec(name)?.[1];
      if (server !== undefined) return known.isMcpServer(server) ? `mcp__${server}` : OTHER;
      return known.isOwnTool(name) ? name : OTHER;
    },
    /** Endpoints choose their statuses: a class of them is one. */
    endpointCode: (code = OTHER) => code.replace(/^http_(\d).*$/, "http_$1xx"),
  };
}

const OTHER = "other";
