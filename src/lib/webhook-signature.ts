// The headers of a signed request, in the form of Standard Webhooks (standardwebhooks.com).

import { createHmac } from "node:crypto";

/** A secret as it is written down: `whsec_` and the base64 of its bytes. */
export const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;

export interface Signed {
  /** Names the message, the same in every attempt to deliver it. */
  readonly id: string;
  readonly at: Date;
  readonly body: string;
}

export function webhookHeaders(secret: string, { id, at, body }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
