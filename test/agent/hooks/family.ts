// A family of threads in real stores: the root, in which a person speaks, and agents that work for it.

import { onTestFinished } from "vitest";
import type { ItemStore } from "../../../src/agent/core/items.ts";
import type { Lineage } from "../../../src/agent/core/records.ts";
import type { RunInput } from "../../../src/agent/core/run.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";

export const ADA: Owner = { tenant: "acme", user: "ada" };
export const ROOT = "th_root";

export async function family(owners: readonly Owner[] = [ADA]): Promise<ItemStore> {
  const stores = createMemoryStores();
  onTestFinished(() => stores.close());
  for (const owner of owners) await stores.threads.create(owner, { id: ROOT, metadata: {} });
  return stores.items;
}

/** For a run on the root thread. */
export const lead = { threadId: ROOT, owner: ADA } satisfies Partial<RunInput>;

export function lineage(name: string): Lineage {
  const parent = { thread_id: ROOT, run_id: "run_parent", call_id: "call_parent", background: false };
  return { parent, root: ROOT, depth: 1, name };
}

/** For a run on the thread of an agent that works for the root. */
export const worker = (name: string): Partial<RunInput> => ({
  threadId: `th_${name}`,
  owner: ADA,
  lineage: lineage(name),
});
