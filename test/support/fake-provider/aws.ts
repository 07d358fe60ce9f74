// AWS's side: signatures of version 4, checked with the secret, and binary frames.

import { createHash, createHmac } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Asked } from "./vendor.ts";

export const AWS_KEY = "AKIDFAKEFAKEFAKE";
export const AWS_SECRET = "fake/secret+0123456789";

const hash = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();

const FORM =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/** What is wrong with the signature of a request. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html */
export function signatureFault({ url, headers, text }: Asked, region: string): string | undefined {
  const [, key, day = "", where, service = "", names = "", signature] =
    FORM.exec(headers.authorization ?? "") ?? [];
  if (key !== AWS_KEY) return "The security token included in the request is invalid.";
  if (where !== region || service !== "bedrock")
    return `Credential should be scoped to a valid region. Wanted ${region}/bedrock, got ${where}/${service}.`;
  const date = String(headers["x-amz-date"]);
  const signed = names.split(";");
  if (!date.startsWith(day) || !["host", "x-amz-date"].every((name) => signed.includes(name)))
    return "The request signature does not cover the date and the host.";
  const [path = "", query = ""] = url.split("?");
  const canonical = [
    ...["POST", path.split("/").map(encodeURIComponent).join("/"), query],
    ...signed.map((name) => `${name}:${String(headers[name]).trim().replace(/\s+/g, " ")}`),
    ...["", names, hash(text)],
  ].join("\n");
  const scope = `${day}/${region}/bedrock/aws4_request`;
  const secret = ["aws4_request"].reduce(hmac, hmac(hmac(hmac(`AWS4${AWS_SECRET}`, day), region), "bedrock"));
  const expected = hmac(secret, ["AWS4-HMAC-SHA256", date, scope, hash(canonical)].join("\n")).toString(
    "hex",
  );
  return expected === signature
    ? undefined
    : "The request signature we calculated does not match the signature you provided.";
}

/** One frame of `application/vnd.amazon.eventstream`. */
export function awsFrame(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const size = Buffer.alloc(2);
      size.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        size,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, checksum]);
}
