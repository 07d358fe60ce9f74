// Encrypts the secrets of the vault. Each secret has its own data key (AES-256-GCM), which is encrypted by a wrapper: a
// key from the settings, or a key management service through a plugin. When the vault's key changes, only the data keys
// are rewrapped.

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import type { KeyWrapper } from "../../agent/core/key-wrapper.ts";

export interface Cipher {
  /** Encrypts a text. It can only be opened with the same `context`, so a copy in another place is useless. */
  seal(text: string, context: string): Promise<string>;
  /** Throws an `UnreadableSecret`. */
  open(sealed: string, context: string): Promise<string>;
  /** Re-encrypts the data key with the current key and leaves the text as it is. Throws an `UnreadableSecret`. */
  rewrap(sealed: string, context: string): Promise<string>;
  /** Returns true if the current key protects the secret. */
  isCurrent(sealed: string): boolean;
}

/** Thrown if the key of a secret is not configured, or if the secret was changed or copied to another place. */
export class UnreadableSecret extends Error {
  override readonly name = "UnreadableSecret";
}

const VERSION = "v1";
const ALGORITHM = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** `previous` contains wrappers whose secrets can still be read. */
export function createCipher(current: KeyWrapper, previous: readonly KeyWrapper[]): Cipher {
  const wrappers = new Map([...previous, current].map((each) => [each.id, each]));

  const dataKeyOf = async ({ keyId, wrapped }: SealedValue, context: string) => {
    const wrapper = wrappers.get(keyId);
    if (!wrapper) throw new UnreadableSecret(`The vault key \`${keyId}\` is not configured.`);
    return wrapper.unwrap(wrapped, context);
  };

  return {
    async seal(text, context) {
      const key = randomBytes(KEY_BYTES);
      const wrapped = await current.wrap(key, context);
      return joined({ keyId: current.id, wrapped, box: encrypted(key, Buffer.from(text), context) });
    },
    async open(sealed, context) {
      const parts = split(sealed);
      return decrypted(await dataKeyOf(parts, context), parts.box, context).toString();
    },
    async rewrap(sealed, context) {
      const parts = split(sealed);
      const wrapped = await current.wrap(await dataKeyOf(parts, context), context);
      return joined({ ...parts, keyId: current.id, wrapped });
    },
    isCurrent: (sealed) => split(sealed).keyId === current.id,
  };
}

/** Wraps data keys with a key from the settings, which must be 32 bytes in base64. */
export function localWrapper(base64: string): KeyWrapper {
  const key = Buffer.from(base64, "base64");
  return {
    id: createHash("sha256").update("skein vault key\0").update(key).digest("hex").slice(0, 16),
    wrap: async (dataKey, context) => encrypted(key, dataKey, context).toString("base64url"),
    unwrap: async (wrapped, context) => decrypted(key, Buffer.from(wrapped, "base64url"), context),
  };
}

interface SealedValue {
  readonly keyId: string;
  readonly wrapped: string;
  /** The nonce, the tag and the encrypted text. */
  readonly box: Buffer;
}

function joined({ keyId, wrapped, box }: SealedValue): string {
  return [VERSION, keyId, Buffer.from(wrapped).toString("base64url"), box.toString("base64url")].join(".");
}

function split(sealed: string): SealedValue {
  const [version, keyId = "", wrapped = "", box = ""] = sealed.split(".");
  if (version !== VERSION)
    throw new UnreadableSecret("A secret has a format that this release does not support.");
  return { keyId, wrapped: Buffer.from(wrapped, "base64url").toString(), box: Buffer.from(box, "base64url") };
}

function encrypted(key: Uint8Array, text: Uint8Array, context: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]);
}

function decrypted(key: Uint8Array, box: Buffer, context: string): Buffer {
  const bodyAt = NONCE_BYTES + TAG_BYTES;
  if (box.length < bodyAt) throw new UnreadableSecret("A secret is incomplete.");
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(ALGORITHM, key, box.subarray(0, NONCE_BYTES), options)
    .setAAD(Buffer.from(context))
    .setAuthTag(box.subarray(NONCE_BYTES, bodyAt));
  try {
    return Buffer.concat([decipher.update(box.subarray(bodyAt)), decipher.final()]);
  } catch (error) {
    const why = "A secret cannot be decrypted, because it was changed or copied from another place.";
    throw new UnreadableSecret(why, { cause: error });
  }
}
