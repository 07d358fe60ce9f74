// What the suites of the ledger of sandboxes start from.

import { createLedger, type SandboxLedger } from "../../../src/sandbox/ledger.ts";
import type { SandboxCaps } from "../../../src/sandbox/sandbox-caps.ts";
import type { Sandbox, SandboxRecord } from "../../../src/sandbox/sandbox-records.ts";
import { ADA, inWorld, type Open, type World } from "./fixture.ts";

export const MINUTE = 60_000;
export const START = Date.parse("2026-11-21T10:00:00.000Z");
export const MANY: SandboxCaps = { total: 100, tenant: 100 };
export const KEEP = { running: 15 * MINUTE, container: 60 * MINUTE, files: 600 * MINUTE };

export const box = (id: string, more: Partial<Sandbox> = {}): Sandbox => ({
  ...{ id, owner: ADA, name: "work", engine: "default", keep: KEEP },
  ...more,
});
export const ONE_EACH: SandboxCaps = { total: 100, tenant: 1 };
export const FOR_EVER = { running: null, container: null, files: null };

export async function known(ledger: SandboxLedger, id: string): Promise<SandboxRecord> {
  const record = await ledger.get(id);
  if (!record) throw new Error(`There is no \`${id}\`.`);
  return record;
}

export async function begin(ledger: SandboxLedger, id: string): Promise<SandboxRecord> {
  const begun = await ledger.begin(await known(ledger, id));
  if (!begun) throw new Error(`\`${id}\` could not be begun.`);
  return begun;
}

/** Runs `body` with a ledger of its own. */
export const withLedgerOf =
  (open: Open) =>
  (body: (ledger: SandboxLedger, world: World) => Promise<void>): Promise<void> =>
    inWorld(open, (world) => body(createLedger(world.stores.documents), world));
