// A family of threads in real stores: the root, in which a person speaks, and agents that work for it.

import { onTestFinished } from "vitest";
import type { HookDefinition } from "../../../src/agent/core/hook.ts";
import type { ItemStore } from "../../../src/agent/core/items.ts";
import { textOf, toolMessages } from "../../../src/agent/core/message.ts";
import type { Lineage } from "../../../src/agent/core/records.ts";
import type { RunInput } from "../../../src/agent/core/run.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { play } from "../../support/agent.ts";
import { made } from "./made.ts";

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

export interface Call {
  tool: string;
  args?: Record<string, unknown>;
}

/** The results of these calls to the hook's tools, made one after the other; errors follow `Error: `. */
export async function told(
  hook: HookDefinition,
  items: ItemStore,
  calls: Call[],
  input: Partial<RunInput> = lead,
) {
  const hooks = [made(hook, { items, agent: { name: "lead" } })];
  const { messages } = await play({ script: [...calls.map((call) => ({ call: [call] })), {}], hooks, input });
  return toolMessages(messages).map(({ content, error }) => (error ? `Error: ${error}` : textOf(content)));
}
