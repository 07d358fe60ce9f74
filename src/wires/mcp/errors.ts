// MCP uses only the error codes of JSON-RPC.

import { RpcError, rpcErrors } from "../json-rpc.ts";

export const sendMcpError = rpcErrors({
  codes: {},
  dataOf: (_, error) => (error instanceof RpcError ? error.data : undefined),
});
