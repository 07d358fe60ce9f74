// Checks whether a request is from Slack: the app's signing secret signs its time and its raw body.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** An older signed request may have been recorded and sent again. */
const WINDOW_S = 5 * 60;

/** `now`: in ms since 1970. */
export function isFromSlack(
  secret: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
  now = Date.now(),
): boolean {
  const { "x-slack-signature": signature, "x-slack-request-timestamp": time } = headers;
  if (typeof signature !== "string" || typeof time !== "string" || !/^\d{1,12}$/.test(time)) return false;
  if (Math.abs(now / 1000 - Number(time)) > WINDOW_S) return false;
  const expected = `v0=${createHmac("sha256", secret).update(`v0:${time}:`).update(body).digest("hex")}`;
  const [left, right] = [Buffer.from(signature), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
