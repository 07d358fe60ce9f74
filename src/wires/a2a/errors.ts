// A2A's error codes. Each error also has its reason as `ErrorInfo`, as the standard requires.

import { RPC, RpcError, rpcErrors } from "../json-rpc.ts";

export { RPC, RpcError };

export const A2A = {
  notFound: -32001,
  notCancelable: -32002,
  push: -32003,
  unsupported: -32004,
  contentType: -32005,
  version: -32009,
} as const;

const REASONS: Readonly<Record<number, string>> = {
  [A2A.notFound]: "TASK_NOT_FOUND",
  [A2A.notCancelable]: "TASK_NOT_CANCELABLE",
  [A2A.push]: "PUSH_NOTIFICATION_NOT_SUPPORTED",
  [A2A.unsupported]: "UNSUPPORTED_OPERATION",
  [A2A.contentType]: "CONTENT_TYPE_NOT_SUPPORTED",
  [A2A.version]: "VERSION_NOT_SUPPORTED",
};

export const sendA2aError = rpcErrors({
  codes: {
    not_found: A2A.notFound,
    thread_busy: A2A.unsupported,
    run_not_active: A2A.unsupported,
    interrupt_closed: A2A.unsupported,
  },
  dataOf(code) {
    const reason = REASONS[code];
    if (reason === undefined) return undefined;
    const type = "type.googleapis.com/google.rpc.ErrorInfo";
    return [{ "@type": type, reason, domain: "a2a-protocol.org" }];
  },
});
