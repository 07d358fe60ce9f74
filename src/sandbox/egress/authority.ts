// A certificate authority for one sandbox. It exists only in memory and can sign only for the hosts that it was created for.
// Node can read certificates but not create them, so this file writes the one profile that is needed (RFC 5280).

import { createHash, generateKeyPair, type KeyObject, randomBytes, sign } from "node:crypto";
import type { SecureContext } from "node:tls";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import { atMost } from "../../lib/lru.ts";
import { bits, integer, octets, oid, sequence, set, tagged, utcTime, utf8, yes } from "./der.ts";

const { createSecureContext } = process.getBuiltinModule("node:tls");

export interface Authority {
  /** The authority's own certificate in PEM format. */
  readonly certificate: string;
  /** Returns the context for a TLS server named `host`. */
  contextFor(host: string): SecureContext;
}

const DAY_MS = 86_400_000;
const LASTS_MS = 5 * 365 * DAY_MS;
/** Certificates are valid from one day ago, because clocks in sandboxes may be slow. */
const SKEW_MS = DAY_MS;
const LEAF_LASTS_MS = 7 * DAY_MS;
/** The maximum number of host certificates in memory, and how long they are used. */
const KEPT = { ...atMost(128), ttl: DAY_MS };

const newKey = promisify(generateKeyPair);
const P256 = { namedCurve: "P-256" };

/** Creates an authority. `hosts` contains names. A name with `*.` stands for all names below it. */
export async function newAuthority(hosts: readonly string[]): Promise<Authority> {
  const [own, leaf] = await Promise.all([newKey("ec", P256), newKey("ec", P256)]);
  const subject = nameOf(`Skein sandbox ${randomBytes(6).toString("hex")}`);
  const signer: Signer = { subject, ...own };
  const now = Date.now();
  const certificate = certified(signer, {
    subject,
    publicKey: own.publicKey,
    lasts: [now - SKEW_MS, now + LASTS_MS],
    extensions: [
      extension(BASIC_CONSTRAINTS, sequence(yes, integer(Buffer.from([0]))), true),
      extension(KEY_USAGE, bits(Buffer.from([0b0000_0110]), 1), true),
      extension(NAME_CONSTRAINTS, namesBelow(hosts), true),
    ],
  });
  const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const contexts = new LRUCache<string, SecureContext>(KEPT);

  return {
    certificate,
    contextFor(host) {
      const known = contexts.get(host);
      if (known) return known;
      const cert = leafFor(signer, host, leaf.publicKey);
      const made = createSecureContext({ key, cert, minVersion: "TLSv1.2" });
      contexts.set(host, made);
      return made;
    },
  };
}

function leafFor(signer: Signer, host: string, publicKey: KeyObject): string {
  const now = Date.now();
  return certified(signer, {
    // The subject's name may have at most 64 characters, so the host's name is the alternative name.
    subject: nameOf("Skein"),
    publicKey,
    lasts: [now - SKEW_MS, now + LEAF_LASTS_MS],
    extensions: [
      extension(BASIC_CONSTRAINTS, sequence(), true),
      extension(KEY_USAGE, bits(Buffer.from([0b1000_0000]), 7), true),
      extension(EXTENDED_KEY_USAGE, sequence(oid(SERVER_AUTH))),
      extension(ALTERNATIVE_NAME, sequence(tagged(DNS_NAME, Buffer.from(host)))),
    ],
  });
}

const COMMON_NAME = "2.5.4.3";
const SUBJECT_KEY = "2.5.29.14";
const KEY_USAGE = "2.5.29.15";
const ALTERNATIVE_NAME = "2.5.29.17";
const BASIC_CONSTRAINTS = "2.5.29.19";
const NAME_CONSTRAINTS = "2.5.29.30";
const AUTHORITY_KEY = "2.5.29.35";
const EXTENDED_KEY_USAGE = "2.5.29.37";
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const ECDSA_WITH_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
/**
 * Context-specific tags for the version, the extensions, a key's identifier, a host's name and permitted names.
 */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const KEY_IDENTIFIER = 0x80;
const DNS_NAME = 0x82;
const PERMITTED = 0xa0;
const VERSION_3 = integer(Buffer.from([2]));

interface Signer {
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface Profile {
  readonly subject: Buffer;
  readonly publicKey: KeyObject;
  /** The start and the end of the validity, in ms since 1970. */
  readonly lasts: readonly [number, number];
  readonly extensions: readonly Buffer[];
}

/** Returns a certificate in PEM format. */
function certified(signer: Signer, { subject, publicKey, lasts, extensions }: Profile): string {
  const spki = publicKey.export({ type: "spki", format: "der" });
  // Clearing the first bit makes the number positive. Setting the second bit prevents a leading zero byte.
  const serial = randomBytes(16);
  serial.writeUInt8(((serial[0] ?? 0) & 0x3f) | 0x40);
  const toSign = sequence(
    tagged(VERSION, VERSION_3),
    integer(serial),
    ECDSA_WITH_SHA256,
    signer.subject,
    sequence(...lasts.map(utcTime)),
    subject,
    spki,
    tagged(
      EXTENSIONS,
      sequence(
        ...extensions,
        extension(SUBJECT_KEY, octets(keyIdOf(publicKey))),
        extension(AUTHORITY_KEY, sequence(tagged(KEY_IDENTIFIER, keyIdOf(signer.publicKey)))),
      ),
    ),
  );
  const der = sequence(toSign, ECDSA_WITH_SHA256, bits(sign("sha256", toSign, signer.privateKey)));
  const lines = der.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

const nameOf = (text: string) => sequence(set(sequence(oid(COMMON_NAME), utf8(text))));

const extension = (id: string, value: Buffer, isCritical = false) =>
  sequence(oid(id), ...(isCritical ? [yes] : []), octets(value));

const keyIdOf = (key: KeyObject) =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);

/** Returns the names for the constraint. A constraint also covers all names below its own, so a `*.` is removed. */
const namesBelow = (hosts: readonly string[]) =>
  sequence(
    tagged(
      PERMITTED,
      ...hosts.map((host) => sequence(tagged(DNS_NAME, Buffer.from(host.replace(/^\*\./, ""))))),
    ),
  );
