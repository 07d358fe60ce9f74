// Builds the headers of a signed request, as defined by Standard Webhooks (standardwebhooks.com).

/** A secret in its text form: `whsec_` and the base64 of its bytes. */
export const WEBHOOK_SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;

export interface WebhookMessage {
  /** Stays the same in every attempt to deliver the message. */
  readonly id: string;
  readonly body: string;
}

/** Signs the message with every secret, so a receiver that knows any one of them accepts it. */
export async function webhookHeaders(
  secrets: readonly string[],
  { id, body }: WebhookMessage,
): Promise<Record<string, string>> {
  const { Webhook } = await import("standardwebhooks");
  const now = new Date();
  const signatures = secrets.map((secret) => {
    // The library rejects base64 without padding, which `WEBHOOK_SECRET` allows.
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    return new Webhook(key, { format: "raw" }).sign(id, now, body);
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": signatures.join(" "),
  };
}
