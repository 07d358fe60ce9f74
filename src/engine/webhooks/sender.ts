// Makes one attempt to send a message to a webhook.

import { messageOf } from "../../agent/core/errors.ts";
import type { PublicFetch } from "../../lib/ssrf-safe-fetch/index.ts";
import { type WebhookMessage, webhookHeaders } from "../../lib/webhook-signature.ts";
import type { Attempt } from "./delivery.ts";

/** Time limit for an attempt, in milliseconds. */
export const ATTEMPT_MS = 10_000;

export interface Receiver {
  readonly url: string;
  /** Each secret adds a signature. */
  readonly secrets: readonly string[];
}

/** Never throws. The failure contains neither the URL nor a secret. */
export type Send = (receiver: Receiver, message: WebhookMessage, signal: AbortSignal) => Promise<Attempt>;

export function createSend(fetch: PublicFetch): Send {
  return async ({ url, secrets }, message, closing) => {
    const timeout = AbortSignal.timeout(ATTEMPT_MS);
    try {
      const headers = {
        "content-type": "application/json",
        "user-agent": "skein",
        ...(await webhookHeaders(secrets, message)),
      };
      const signal = AbortSignal.any([closing, timeout]);
      await using answer = await fetch(url, { method: "POST", headers, body: message.body, signal });
      const { status } = answer;
      if (status >= 200 && status < 300) return { http_status: status };
      return { http_status: status, failure: `it answered ${status}`, isFinal: isRefusal(status) };
    } catch (error) {
      if (closing.aborted) return { failure: "the server is shutting down" };
      if (timeout.aborted) return { failure: `it did not answer within ${ATTEMPT_MS / 1000} s` };
      return { failure: `it could not be reached: ${messageOf(error)}` };
    }
  };
}

/** Client errors that may go away on a retry. */
const TRANSIENT = new Set([408, 409, 425, 429]);
const isRefusal = (status: number) => status >= 400 && status < 500 && !TRANSIENT.has(status);
