// The values of labels: a closed set from the configuration. All other values become `other`.

/** Names from the current configuration that labels may have. */
export interface KnownNames {
  isAgent(name: string): boolean;
  /** True if the agents file names the model. */
  isModel(name: string): boolean;
  /** True for a tool of the server itself; false for a tenant's or a front end's. */
  isOwnTool(name: string): boolean;
  isMcpServer(name: string): boolean;
}

export type Labels = ReturnType<typeof createLabels>;

export function createLabels(known: KnownNames) {
  return {
    agent: (name: string) => (known.isAgent(name) ? name : OTHER),
    model: (name: string) => (known.isModel(name) ? name : OTHER),
    /** All tools of an MCP server have one label: the server decides how many tools it lists. */
    tool(name: string): string {
      const server = /^mcp__(.+?)__/.exec(name)?.[1];
      if (server !== undefined) return known.isMcpServer(server) ? `mcp__${server}` : OTHER;
      return known.isOwnTool(name) ? name : OTHER;
    },
    /** Endpoints choose their statuses, so all statuses of a class have one label. */
    endpointCode: (code = OTHER) => code.replace(/^http_(\d).*$/, "http_$1xx"),
  };
}

const OTHER = "other";
