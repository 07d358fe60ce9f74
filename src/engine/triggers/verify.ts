// Verifies that a delivery was sent with a trigger's secret, and finds the sender's id for the delivery.

import { createHash, createHmac } from "node:crypto";
import { z } from "zod";
import { timingSafeEqualText } from "../../lib/text.ts";

const HeaderName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be a header name")
  .transform((name) => name.toLowerCase());

export const Verification = z
  .discriminatedUnion("scheme", [
    z.strictObject({ scheme: z.literal("github") }),
    z.strictObject({ scheme: z.literal("slack") }),
    z.strictObject({ scheme: z.literal("stripe") }),
    z.strictObject({ scheme: z.literal("standard-webhooks") }),
    z.strictObject({
      scheme: z.literal("hmac"),
      header: HeaderName.describe("Header with the HMAC-SHA256 of the raw body."),
      prefix: z.string().max(64).default("").describe("Text before the signature, such as `sha256=`."),
      encoding: z.enum(["hex", "base64"]).default("hex"),
    }),
    z.strictObject({
      scheme: z.literal("token"),
      header: HeaderName.default("authorization").describe(
        "Header that contains the secret itself, alone or after `Bearer `.",
      ),
    }),
  ])
  .meta({ id: "TriggerVerification" });
export type Verification = z.infer<typeof Verification>;
export type Scheme = Verification["scheme"];

/** A request as received. */
export interface RawDelivery {
  /** Headers by lowercase name. Repeated headers are left out. */
  readonly headers: Readonly<Record<string, string>>;
  readonly raw: Buffer;
}

/** How far the time of a signed delivery may differ from now, in milliseconds. */
const WINDOW_MS = 5 * 60_000;

/**
 * Returns true if one of the secrets signs the delivery. If the scheme signs a time, that time must also be close to
 * `now`.
 */
export function isVerified(
  verification: Verification,
  secrets: readonly string[],
  delivery: RawDelivery,
  now: number,
): boolean {
  const claim = claimOf(verification, delivery);
  if (!claim) return false;
  const isInTime = claim.seconds === undefined || Math.abs(now - claim.seconds * 1000) <= WINDOW_MS;
  // Compares every signature with every secret, so the duration does not reveal which one matches.
  let fits = false;
  for (const secret of secrets) {
    const expected = claim.expected(secret);
    for (const given of claim.given) fits = timingSafeEqualText(given, expected) || fits;
  }
  return fits && isInTime;
}

/** The credential of a delivery: its signatures or its token. */
interface Claim {
  readonly given: readonly string[];
  /** Returns the signature or token that this secret produces. */
  expected(secret: string): string;
  /** The time that is signed along with the body, in seconds since 1970. */
  readonly seconds?: number;
}

/** The maximum number of signatures to compare per delivery. */
const MAX_SIGNATURES = 8;

function claimOf(verification: Verification, { headers, raw }: RawDelivery): Claim | undefined {
  switch (verification.scheme) {
    case "github":
      return given(headers["x-hub-signature-256"], (secret) => `sha256=${hmac(secret, raw).digest("hex")}`);
    case "slack": {
      const time = headers["x-slack-request-timestamp"] ?? "";
      const expected = (secret: string) => `v0=${hmac(secret, `v0:${time}:`, raw).digest("hex")}`;
      return given(headers["x-slack-signature"], expected, time);
    }
    case "stripe":
      return stripeClaim(headers["stripe-signature"] ?? "", raw);
    case "standard-webhooks": {
      const { "webhook-id": id = "", "webhook-timestamp": time = "" } = headers;
      const signatures = headers["webhook-signature"]?.split(" ").slice(0, MAX_SIGNATURES);
      const expected = (secret: string) =>
        `v1,${hmac(webhookKey(secret), `${id}.${time}.`, raw).digest("base64")}`;
      return id === "" ? undefined : given(signatures, expected, time);
    }
    case "hmac": {
      const { header, prefix, encoding } = verification;
      return given(headers[header], (secret) => prefix + hmac(secret, raw).digest(encoding));
    }
    case "token":
      return given(headers[verification.header]?.replace(/^Bearer /i, ""), (secret) => secret);
  }
}

/** Returns undefined if there is no signature or the time is invalid. */
function given(
  sent: string | readonly string[] | undefined,
  expected: (secret: string) => string,
  time?: string,
): Claim | undefined {
  if (sent === undefined || (time !== undefined && !/^\d{1,12}$/.test(time))) return undefined;
  return { given: [sent].flat(), expected, ...(time === undefined ? {} : { seconds: Number(time) }) };
}

/** `t=1492774577,v1=5257a8…,v1=…`. Each signature was made with a different secret. */
function stripeClaim(header: string, raw: Buffer): Claim | undefined {
  const parts = header.split(",", 2 * MAX_SIGNATURES).map((part) => part.trim().split("=", 2));
  const of = (name: string) => parts.flatMap(([key, value = ""]) => (key === name ? [value] : []));
  const [time = ""] = of("t");
  return given(of("v1"), (secret) => hmac(secret, `${time}.`, raw).digest("hex"), time);
}

function hmac(key: string | Buffer, ...parts: readonly (string | Buffer)[]) {
  const made = createHmac("sha256", key);
  for (const part of parts) made.update(part);
  return made;
}

const webhookKey = (secret: string) => Buffer.from(secret.replace(/^whsec_/, ""), "base64");

/** Headers that contain a credential or a signature, in addition to the header configured in a trigger. */
const CREDENTIALS: ReadonlySet<string> = new Set(
  (
    "authorization proxy-authorization cookie x-api-key x-hub-signature x-hub-signature-256 x-slack-signature " +
    "stripe-signature webhook-signature x-forwarded-client-cert"
  ).split(" "),
);

/** Returns the headers that templates can read. */
export function readableHeaders(
  verification: Verification,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const own = "header" in verification ? verification.header : undefined;
  const readable = Object.entries(headers).filter(([name]) => name !== own && !CREDENTIALS.has(name));
  return Object.fromEntries(readable);
}

/**
 * Returns the sender's id for the delivery, which stays the same when the delivery is sent again. Returns undefined if the
 * sender gave no id. Only an id that the signature covers can identify a delivery; anyone who has seen a signed body could send
 * it again under another id.
 */
export function sentId(
  { scheme }: Verification,
  headers: Readonly<Record<string, string>>,
  body: unknown,
): string | undefined {
  const inBody = (name: string) => {
    const id: unknown = Object(body)[name];
    return typeof id === "string" && Object.hasOwn(Object(body), name) ? id : undefined;
  };
  switch (scheme) {
    case "github":
      return headers["x-github-delivery"];
    case "slack":
      return inBody("event_id");
    case "stripe":
      return inBody("id");
    case "standard-webhooks":
      return headers["webhook-id"];
    case "hmac":
    case "token":
      return headers["idempotency-key"];
  }
}

/** Returns true if the signature covers only the body. A token signs nothing, because its holder can send anything. */
export const signsBodyOnly = ({ scheme }: Verification): boolean => scheme === "github" || scheme === "hmac";

export const digestOf = (...parts: readonly (string | Buffer)[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("base64url");
};
