// API keys: what they look like and how they are stored. The key itself is neither stored nor logged: it is shown once, to
// its creator.
//
// `sk_<id>_<secret>`: the id finds the record, the secret proves the key. Its 256 random bits cannot be guessed, so
// one round of SHA-256 keeps them as well as any slow hash would, and every request can afford it.

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

/** What people see of a key. */
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

/** What is kept of a key: `hash` is what `hashOf` makes of it. */
export interface KeptApiKey extends ApiKey {
  readonly hash: string;
}

export type NewApiKey = Omit<KeptApiKey, "created_at" | "revoked_at">;

/** For operators and for authentication. No user asks for these, so the id alone is the key. */
export interface ApiKeyStore {
  /** Throws `already_exists` for an id that was ever taken. */
  create(key: NewApiKey): Promise<ApiKey>;
  /** Also one that is revoked or has expired. */
  find(id: string): Promise<KeptApiKey | undefined>;
  /** Newest first, with those that are revoked or have expired; of one tenant, if it is named. */
  list(tenant?: string): Promise<ApiKey[]>;
  /** From now on; for one that was revoked already, from then on. Undefined when there is none. */
  revoke(id: string): Promise<ApiKey | undefined>;
  /** Forgets it. False when there is none. */
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

/** Makes a key and keeps its record. `key` is to be shown once, and forgotten. */
export async function issueApiKey(
  store: ApiKeyStore,
  about: Omit<NewApiKey, "id" | "hash">,
): Promise<{ key: string; record: ApiKey }> {
  const { key, id } = newApiKey();
  return { key, record: await store.create({ ...about, id, hash: hashOf(key) }) };
}

/** One that is not kept yet. */
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

/** The id and the hash of what looks like a key; undefined for anything else. */
export function readApiKey(text: string): ReadKey | undefined {
  const [, id] = text.length === KEY_LENGTH ? (KEY.exec(text) ?? []) : [];
  return id === undefined ? undefined : { id, hash: hashOf(text) };
}
