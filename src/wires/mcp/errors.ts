// MCP has no error codes of its own besides those of JSON-RPC.

import { RpcError, rpcErrors } from "../json-rpc.ts";

export const sendMcpError = rpcErrors({
  codes: {},
  dataOf: (_, error) => (error instanceof RpcError ? error.data : undefined),
});
