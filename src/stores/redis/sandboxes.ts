// The ledger of sandboxes in Redis. All of it lies in one place, so that caps hold across all tenants.

import type {
  Sandbox,
  SandboxKeep,
  SandboxLedger,
  SandboxRecord,
  SandboxState,
} from "../../backends/ledger.ts";
import type { Owner } from "../../core/ids.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Connection } from "./connection.ts";
import { ASKING_MS, endedKey, LEDGER, sandboxKey, tenantTag } from "./keys.ts";
import { adoptBox } from "./scripts/adopt-box.ts";
import { beginBox } from "./scripts/begin-box.ts";
import { enterBox } from "./scripts/enter-box.ts";
import { findBoxes } from "./scripts/find-boxes.ts";
import { readBox } from "./scripts/read-box.ts";
import { settleBox } from "./scripts/settle-box.ts";
import { touchBox } from "./scripts/touch-box.ts";

/** How long a process may take to end a sandbox before others believe it dead, in ms. */
const ENDING_MS = 60_000;

export function redisSandboxes(redis: Connection): SandboxLedger {
  return {
    async enter(sandbox, { total, tenant }) {
      const args = { ...callOf(sandbox.id), ...toldOf(sandbox), total_cap: total, tenant_cap: tenant };
      return redis.run(enterBox, keysOf(sandbox.id), args);
    },
    async touch(ids) {
      redis.assertOpen();
      await Promise.all(ids.map((id) => redis.run(touchBox, keysOf(id), callOf(id))));
    },
    async adopt(sandbox, state) {
      const args = { ...callOf(sandbox.id), ...toldOf(sandbox), as: state };
      await redis.run(adoptBox, keysOf(sandbox.id), args);
    },
    get: find,
    async due(limit) {
      return found(LEDGER.due, 0, limit);
    },
    async idle(idleMs, limit) {
      return found(LEDGER.running, idleMs, limit);
    },
    async begin({ id, revision }) {
      const fields = await redis.run(beginBox, keysOf(id), { ...callOf(id), seen: revision });
      return fields ? recordOf(id, fields) : undefined;
    },
    async settle({ id, revision }, state) {
      const call = callOf(id);
      const args = { ...call, seen: revision, as: state, asking: ASKING_MS };
      return (await redis.run(settleBox, { ...keysOf(id), ended: endedKey(call.revision) }, args)) === 1;
    },
  };

  async function find(id: string): Promise<SandboxRecord | undefined> {
    return recordOf(id, await redis.run(readBox, { box: sandboxKey(id) }, {}));
  }

  async function found(list: string, ago: number, limit: number): Promise<SandboxRecord[]> {
    const ids = await redis.run(findBoxes, { list }, { ago, limit });
    const records = await Promise.all(ids.map(find));
    return records.filter((record) => record !== undefined);
  }
}

const keysOf = (id: string) => ({ ...LEDGER, box: sandboxKey(id) });

/** Each call has a name of its own, which becomes the revision of what it changes. */
const callOf = (id: string) => ({ id, revision: randomId(), ending_ms: ENDING_MS });

function toldOf({ owner, name, keep }: Sandbox) {
  const { tenant, user } = owner;
  return {
    tenant: tenantTag(owner),
    about: JSON.stringify({ owner: { tenant, user }, name }),
    keep_running: keep.running ?? "",
    keep_container: keep.container ?? "",
    keep_files: keep.files ?? "",
  };
}

function recordOf(id: string, fields: readonly string[]): SandboxRecord | undefined {
  const box = new Map<string, string>();
  for (let at = 0; at < fields.length; at += 2) box.set(fields[at] ?? "", fields[at + 1] ?? "");
  if (box.size === 0) return undefined;
  // `toldOf` has written it.
  const { owner, name } = JSON.parse(box.get("about") ?? "") as { owner: Owner; name: string };
  const keep: SandboxKeep = {
    running: timeOf(box.get("keep_running")),
    container: timeOf(box.get("keep_container")),
    files: timeOf(box.get("keep_files")),
  };
  return {
    ...{ id, owner, name, keep },
    // The scripts write no other.
    state: box.get("state") as SandboxState,
    used_at: Number(box.get("used")),
    revision: box.get("revision") ?? "",
  };
}

const timeOf = (text = "") => (text === "" ? null : Number(text));
