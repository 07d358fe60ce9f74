// API keys: their format and how they are stored. The key itself is neither stored nor logged. It is shown once, to its
// creator.
//
// In `sk_<id>_<secret>`, the id finds the record and the secret proves the key. The secret has 256 random bits, so it
// cannot be guessed. One round of SHA-256 therefore protects it as well as a slow hash would, and is cheap enough for
// every request.

import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import {
  type Collection,
  change,
  type Document,
  type Documents,
  remove,
} from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import { randomId } from "../../lib/random-id.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import { OwnerName, Scope } from "./principal.ts";

/** The public part of an API key: the fields that its owner, admins and operators can see. */
export const ApiKey = z.object({
  id: z.string(),
  tenant: OwnerName,
  user: OwnerName,
  scopes: z.array(Scope).min(1),
  name: z
    .string()
    .regex(/^[^\p{C}\p{Zl}\p{Zp}]{0,128}$/u, "must be at most 128 characters, all in one line")
    .describe("Purpose of the key."),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
  revoked_at: z.iso.datetime().optional(),
});
export type ApiKey = z.infer<typeof ApiKey>;

/** A stored record of an API key. `hash` is the result of `hashOf`. */
export interface KeptApiKey extends ApiKey {
  readonly hash: string;
}

export type NewApiKey = Omit<KeptApiKey, "created_at" | "revoked_at">;

/** Only operators and authentication use this store. Lookups therefore take an id and no owner. */
export interface ApiKeyStore {
  /** Throws `already_exists` if a key with this id exists, even a revoked one. */
  create(key: NewApiKey): Promise<ApiKey>;
  /** Returns revoked and expired keys too. */
  find(id: string): Promise<KeptApiKey | undefined>;
  /** Returns the keys of `tenant`, or of all tenants, newest first. Includes revoked and expired keys. */
  list(tenant?: string): Promise<ApiKey[]>;
  /**
   * Revokes the key. A key that is already revoked keeps its earlier time. Returns undefined if the key does not exist.
   */
  revoke(id: string): Promise<ApiKey | undefined>;
  /** Deletes the record. Returns false if it does not exist. */
  remove(id: string): Promise<boolean>;
}

const KEYS: Collection = { kind: "keys" };

export function createApiKeys(documents: Documents): ApiKeyStore {
  return {
    create: (key) =>
      change(documents, { collection: KEYS, keys: [key.id] }, ({ found: [found], now }) => {
        if (found) throw new AppError("already_exists", `An API key \`${key.id}\` already exists.`);
        const { id, ...about } = { ...key, created_at: timeOf(now) };
        const body = JSON.stringify(about);
        return { writes: [{ key: id, seen: undefined, body }], result: shown(recordOf({ key: id, body })) };
      }),

    async find(id) {
      const [found] = (await documents.read(KEYS, [id])).found;
      return found && recordOf(found);
    },

    async list(tenant) {
      const all = await documents.list(KEYS);
      const keys = await mapInTicks(tenant ?? "", all, (document) => shown(recordOf(document)));
      return keys
        .filter((key) => tenant === undefined || key.tenant === tenant)
        .sort((a, b) =>
          a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1,
        );
    },

    remove: (id) => remove(documents, KEYS, id),

    revoke: (id) =>
      change(documents, { collection: KEYS, keys: [id] }, ({ found: [found], now }) => {
        if (!found) return { result: undefined };
        const { id: _, ...about } = recordOf(found);
        if (about.revoked_at) return { result: shown(recordOf(found)) };
        const body = JSON.stringify({ ...about, revoked_at: timeOf(now) });
        return {
          writes: [{ key: id, seen: found.version, body }],
          result: shown(recordOf({ key: id, body })),
        };
      }),
  };
}

const timeOf = (ms: number) => new Date(ms).toISOString();

function recordOf({ key, body }: Pick<Document, "key" | "body">): KeptApiKey {
  // Only `create` and `revoke` write these.
  return { id: key, ...(JSON.parse(body) as Omit<KeptApiKey, "id">) };
}

function shown({ hash: _, ...key }: KeptApiKey): ApiKey {
  return key;
}

/** Creates a key and stores its record. The caller shows `key` once and does not store it. */
export async function issueApiKey(
  store: ApiKeyStore,
  about: Omit<NewApiKey, "id" | "hash">,
): Promise<{ key: string; record: ApiKey }> {
  const { key, id } = newApiKey();
  return { key, record: await store.create({ ...about, id, hash: hashOf(key) }) };
}

/** Creates a key and its id without storing them. */
export function newApiKey(): { key: string; id: string } {
  const id = randomId();
  return { key: `sk_${id}_${randomBytes(32).toString("base64url")}`, id };
}

const hashOf = (key: string) => createHash("sha256").update(key).digest("hex");

const KEY = /^sk_([0-9A-Za-z]{22})_[\w-]{43}$/;
export const SECRET_LENGTH = 43;
const KEY_LENGTH = 3 + 22 + 1 + SECRET_LENGTH;

export interface ReadKey {
  readonly id: string;
  readonly hash: string;
}

/** Returns the id and the hash of a string that looks like a key, or undefined for any other string. */
export function readApiKey(text: string): ReadKey | undefined {
  const [, id] = text.length === KEY_LENGTH ? (KEY.exec(text) ?? []) : [];
  return id === undefined ? undefined : { id, hash: hashOf(text) };
}
