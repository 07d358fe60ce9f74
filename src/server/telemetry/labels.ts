// The values of labels: a closed set from the configuration. Every other value becomes `other`.

/** The names in the current configuration, which labels may use. */
export interface KnownNames {
  isAgent(name: string): boolean;
  /** Returns true if the agents file names the model. */
  isModel(name: string): boolean;
  /** Returns true for a tool of the server itself, and false for a tool of a tenant or a front end. */
  isOwnTool(name: string): boolean;
  isMcpServer(name: string): boolean;
}

export type Labels = ReturnType<typeof createLabels>;

export function createLabels(known: KnownNames) {
  return {
    agent: (name: string) => (known.isAgent(name) ? name : OTHER),
    model: (name: string) => (known.isModel(name) ? name : OTHER),
    /** All tools of an MCP server share one label, because the MCP server decides how many tools it lists. */
    tool(name: string): string {
      const server = /^mcp__(.+?)__/.exec(name)?.[1];
      if (server !== undefined) return known.isMcpServer(server) ? `mcp__${server}` : OTHER;
      return known.isOwnTool(name) ? name : OTHER;
    },
    /** Endpoints choose their own statuses, so all statuses of a class share one label. */
    endpointCode: (code = OTHER) => code.replace(/^http_(\d).*$/, "http_$1xx"),
  };
}

const OTHER = "other";
