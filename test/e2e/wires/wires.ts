// The scenarios of each wire, to be run against another deployment. A file that changes globals has no place here.

export const WIRES: Readonly<Record<string, () => Promise<unknown>>> = {
  "ai-sdk": () => import("../../http/wires/ai-sdk.test.ts"),
  openai: () => import("../../http/wires/openai.test.ts"),
  "openai-clients": () => import("../../http/wires/openai-clients.test.ts"),
  "openai-responses": () => import("../../http/wires/openai-responses.test.ts"),
  "ag-ui": () => import("../../http/wires/ag-ui.test.ts"),
  langgraph: () => import("../../http/wires/langgraph.test.ts"),
  "langgraph-use-stream": () => import("../../http/wires/langgraph-use-stream.test.ts"),
  mcp: () => import("../../http/wires/mcp.test.ts"),
  a2a: () => import("../../http/wires/a2a.test.ts"),
};
