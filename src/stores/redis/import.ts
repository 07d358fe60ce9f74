// Takes over what version 0.1.0 kept of API keys and sandboxes in Redis, and leaves it there: processes of that version
// may still run.

import { type Cluster, Redis } from "ioredis";
import type { Documents } from "../../core/documents.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Connection } from "./connection.ts";
import { script } from "./connection.ts";
import { collectionKeys, OLD_KEY_LIST, OLD_KEYS, OLD_SANDBOXES, OWNERS_FOUND } from "./keys.ts";
import type { RedisOwners } from "./owners.ts";
import { ownerOf } from "./records.ts";

const BATCH = 500;
const version = () => `v${randomId()}`;

/**
 * Ids of old keys that are no documents yet, or were revoked while their documents were not. `prefix` and an id name the
 * hash of an old key: all are in one slot.
 */
const changedKeys = script<string[]>()({
  kind: "reads",
  keys: ["old", "items"],
  args: ["limit", "prefix"],
  lua: `
local function is_revoked(text) return string.find(text, '"revoked_at":', 1, true) end
local found = {}
for _, id in ipairs(redis.call('ZRANGE', old, 0, -1)) do
  local text = redis.call('HGET', items, id)
  if not text or not is_revoked(text) and redis.call('HEXISTS', prefix .. id, 'revoked') == 1 then
    found[#found + 1] = id
  end
  if #found == tonumber(limit) then break end
end
return found`,
});

/** Repeated with every start: a process of the older version may have made or revoked keys meanwhile. */
export async function importKeys(
  redis: Pick<Connection, "run" | "ask">,
  documents: Documents,
): Promise<void> {
  const keys = { old: OLD_KEY_LIST, items: collectionKeys({ kind: "keys" }).items };
  for (;;) {
    const ids = await redis.run(changedKeys, keys, { limit: BATCH, prefix: OLD_KEYS });
    if (ids.length === 0) return;
    const { found } = await documents.read({ kind: "keys" }, ids);
    const writes = ids.map(async (id, at) => {
      const { about = "{}", hash, created, revoked } = await redis.ask(fieldsOf(OLD_KEYS + id));
      const times = { created_at: timeOf(created), revoked_at: revoked ? timeOf(revoked) : undefined };
      const body = JSON.stringify({ ...JSON.parse(about), hash, ...times });
      return { key: id, seen: found[at]?.version, body };
    });
    await documents.write({ kind: "keys" }, await Promise.all(writes), { version: version() });
  }
}

const timeOf = (ms = "0") => new Date(Number(ms)).toISOString();

/** Once: the list of sandboxes that run says that it was done. */
export async function importSandboxes(
  commands: Redis | Cluster,
  redis: Pick<Connection, "run" | "ask">,
  documents: Documents,
): Promise<void> {
  const ledger = { kind: "sandboxes" };
  const { found } = await documents.read(ledger, ["taken"]);
  if (found[0]) return;
  const taken: [id: string, tenant: string][] = [];
  const writes = [];
  for (const hash of await keysLike(commands, `${OLD_SANDBOXES}*`)) {
    const id = hash.slice(OLD_SANDBOXES.length);
    const box = await redis.ask(fieldsOf(hash));
    const { owner, name } = JSON.parse(box.about ?? "{}") as {
      owner: { tenant: string; user: string };
      name: string;
    };
    const numberOf = (text = "") => (text === "" ? null : Number(text));
    const keep = {
      running: numberOf(box.keep_running),
      container: numberOf(box.keep_container),
      files: numberOf(box.keep_files),
    };
    const { state } = box;
    const used_at = Number(box.used);
    if (state === "running" || state === "ending") taken.push([id, owner.tenant]);
    const kept = state === "running" ? keep.running : state === "stopped" ? keep.container : keep.files;
    // The process that was ending one may be gone: it is due at once.
    const due_at = state === "ending" ? used_at : kept === null ? null : used_at + kept;
    const body = JSON.stringify({ owner: [owner.tenant, owner.user], name, keep, state, used_at, due_at });
    writes.push({ key: id, seen: undefined, body, due: due_at });
  }
  writes.push({ key: "taken", seen: undefined, body: JSON.stringify(taken) });
  await documents.write(ledger, writes, { version: version() });
}

/** So long may an upgrade take, in ms: older processes note no owners. */
const UPGRADE_MS = 86_400_000;

/** While the store is used: who has threads that older versions have made. First in a Redis, and with each start of the next day. */
export async function findOwners(
  commands: Redis | Cluster,
  redis: Pick<Connection, "ask">,
  { owners, signal }: { readonly owners: Pick<RedisOwners, "note">; readonly signal: AbortSignal },
): Promise<void> {
  const begun = await redis.ask((client) => client.get(OWNERS_FOUND));
  if (begun !== null && Date.now() - Number(begun) > UPGRADE_MS) return;
  for await (const keys of pagesOfKeys(commands, "sk:{*}:meta")) {
    signal.throwIfAborted();
    const texts = await Promise.all(keys.map((meta) => redis.ask((client) => client.hget(meta, "owner"))));
    await Promise.all(texts.map(async (text) => text !== null && owners.note(ownerOf(text))));
  }
  await redis.ask((client) => client.set(OWNERS_FOUND, begun ?? Date.now()));
}

async function keysLike(commands: Redis | Cluster, pattern: string): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const keys of pagesOfKeys(commands, pattern)) for (const key of keys) found.add(key);
  return found;
}

/** A key may come twice. */
async function* pagesOfKeys(
  commands: Redis | Cluster,
  pattern: string,
): AsyncGenerator<string[], void, void> {
  const nodes = commands instanceof Redis ? [commands] : commands.nodes("master");
  for (const node of nodes)
    for await (const keys of node.scanStream({ match: pattern, count: 1000 })) yield keys as string[];
}

const fieldsOf = (hash: string) => (client: Redis | Cluster) =>
  client.hgetall(hash) as Promise<Partial<Record<string, string>>>;
