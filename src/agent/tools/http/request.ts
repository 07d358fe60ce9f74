// Creates the HTTP request of a call. The request is signed as in Standard Webhooks and contains a key that identifies
// repeated calls to the receiver. A repeated call has the same key and body.

import { createHash } from "node:crypto";
import { webhookHeaders } from "../../../lib/webhook-signature.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Run } from "../../core/tool.ts";
import { type HttpTool, secretsOf } from "./registration.ts";

/** The address that accepts a later result, and the time until which it does. */
export interface ResultAddress {
  readonly result_url: string;
  readonly result_expires_at: string;
}

export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface CallRequest {
  /** Signs the request. Call it for each attempt, because a signature expires after a few minutes. */
  signed(): Promise<SignedRequest>;
}

export function callRequest(
  tool: HttpTool,
  { call, run, address }: { call: ToolCall; run: Run; address: ResultAddress | undefined },
): CallRequest {
  const id = idempotencyKey(call, run);
  const traceparent = run.traceparent?.(call.id);
  const body = JSON.stringify({
    name: call.name,
    args: call.args,
    call_id: call.id,
    run_id: run.id,
    thread_id: run.threadId,
    tenant: run.owner.tenant,
    user: run.owner.user,
    ...address,
  });
  return {
    async signed() {
      return {
        method: "POST",
        body,
        headers: {
          ...tool.headers,
          "content-type": "application/json",
          accept: "application/json, application/x-ndjson, text/event-stream",
          "user-agent": "skein",
          "idempotency-key": id,
          ...(traceparent === undefined ? {} : { traceparent }),
          ...(await webhookHeaders(secretsOf(tool), { id, body })),
        },
      };
    },
  };
}

/**
 * Combines the ids of the run and the call. The model chooses the call's id, so an id that a header cannot
 * contain is hashed.
 */
function idempotencyKey(call: ToolCall, run: Run): string {
  const isPlain = /^[A-Za-z0-9_-]{1,100}$/.test(call.id);
  return `${run.id}:${isPlain ? call.id : createHash("sha256").update(call.id).digest("base64url")}`;
}
