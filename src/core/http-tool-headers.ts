// The headers of a call that its tool may not choose.

const OURS: ReadonlySet<string> = new Set([
  // of the connection
  ...["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "host"],
  ...["http2-settings", "via", "forwarded"],
  // of the message
  ...[
    "content-length",
    "content-type",
    "content-encoding",
    "accept",
    "accept-encoding",
    "user-agent",
    "date",
  ],
  // what the receiver relies on
  "idempotency-key",
]);
const OUR_PREFIXES = ["webhook-", "proxy-", "x-forwarded-"];

export function isHeaderSetByUs(name: string): boolean {
  const lower = name.toLowerCase();
  return OURS.has(lower) || OUR_PREFIXES.some((prefix) => lower.startsWith(prefix));
}
