// What a store of API keys promises to those who check, list and revoke them.

import { describe, expect, test } from "vitest";
import { type ApiKeyStore, issueApiKey, type NewApiKey, readApiKey } from "../../src/server/auth/api-keys.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const at = (ms: number) => new Date(START + ms).toISOString();

export interface KeyWorld {
  readonly keys: ApiKeyStore;
  advance(ms: number): void;
}

/** Opens an empty store; `now` is its clock. */
export type OpenKeys = (now: () => number) => Promise<{ keys: ApiKeyStore; close(): void | Promise<void> }>;

const about = (more: Partial<NewApiKey> = {}): Omit<NewApiKey, "id" | "hash"> => ({
  ...{ tenant: "acme", user: "ada", scopes: ["read", "run"], name: "laptop" },
  ...more,
});

export function apiKeysContract(open: OpenKeys): void {
  const withKeys = async (body: (world: KeyWorld) => Promise<void>) => {
    let time = START;
    const { keys, close } = await open(() => time);
    try {
      await body({
        keys,
        advance: (ms) => {
          time += ms;
        },
      });
    } finally {
      await close();
    }
  };

  describe("an API key", () => {
    test("can be found by its id, with its description", () =>
      withKeys(async ({ keys }) => {
        const { key, record } = await issueApiKey(keys, about({ expires_at: at(5) }));
        expect(record).toEqual({ ...about({ expires_at: at(5) }), id: record.id, created_at: at(0) });
        expect(await keys.find(record.id)).toEqual({ ...record, hash: readApiKey(key)?.hash });
        expect(readApiKey(key)?.id).toBe(record.id);
        expect(await keys.find("0".repeat(22))).toBeUndefined();
      }));

    test("is not contained in the stored data", () =>
      withKeys(async ({ keys }) => {
        const { key, record } = await issueApiKey(keys, about());
        const secret = key.slice(-43);
        const kept = [await keys.find(record.id), await keys.list(), await keys.revoke(record.id)];
        expect(JSON.stringify(kept)).not.toContain(secret);
        expect(JSON.stringify([kept[1], kept[2], record])).not.toContain(String(readApiKey(key)?.hash));
      }));

    test("never belongs to another key, because each id is used only once", () =>
      withKeys(async ({ keys }) => {
        const { record } = await issueApiKey(keys, about());
        await keys.revoke(record.id);
        const again = { ...about({ tenant: "thief" }), id: record.id, hash: "0".repeat(64) };
        await expect(keys.create(again)).rejects.toMatchObject({ code: "already_exists" });
        expect(await keys.find(record.id)).toMatchObject({ tenant: "acme", revoked_at: at(0) });
      }));

    test("does not change if the caller changes its own copy", () =>
      withKeys(async ({ keys }) => {
        const scopes: NewApiKey["scopes"] = ["read"];
        const { record } = await issueApiKey(keys, about({ scopes }));
        scopes.push("admin");
        record.scopes.push("admin");
        (await keys.find(record.id))?.scopes.push("admin");
        expect((await keys.find(record.id))?.scopes).toEqual(["read"]);
      }));

    test("stays revoked", () =>
      withKeys(async ({ keys, advance }) => {
        const { record } = await issueApiKey(keys, about());
        const other = await issueApiKey(keys, about());
        advance(10);
        expect(await keys.revoke(record.id)).toEqual({ ...record, revoked_at: at(10) });
        advance(10);
        expect(await keys.revoke(record.id)).toEqual({ ...record, revoked_at: at(10) });
        expect(await keys.find(record.id)).toMatchObject({ revoked_at: at(10) });
        expect(await keys.find(other.record.id)).not.toHaveProperty("revoked_at");
        expect(await keys.revoke("0".repeat(22))).toBeUndefined();
      }));
  });

  describe("the list of API keys", () => {
    test("is sorted newest first, and includes revoked keys", () =>
      withKeys(async ({ keys, advance }) => {
        const ids: string[] = [];
        for (let n = 0; n < 10; n++) {
          ids.unshift((await issueApiKey(keys, about({ name: `${n}` }))).record.id);
          if (n % 5 === 4) advance(1);
        }
        await keys.revoke(ids[3] ?? "");
        const list = await keys.list();
        expect(list.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
        const times = list.map(({ created_at }) => created_at);
        expect(times).toEqual(times.toSorted().reverse());
      }));

    test("can be limited to one tenant", () =>
      withKeys(async ({ keys }) => {
        for (const tenant of ["acme", "other", "acme"]) await issueApiKey(keys, about({ tenant }));
        expect(await keys.list("acme")).toHaveLength(2);
        expect(await keys.list("ACME")).toEqual([]);
      }));
  });
}
