// The port to the ledger of sandboxes: who has which, what state it is in, and when it was used last. All processes
// of a deployment share it, so that no two of them make, stop or remove the same one at once.

import type { Owner } from "../core/ids.ts";

export interface Sandbox {
  /** Names the container and the volume. */
  readonly id: string;
  readonly owner: Owner;
  /** The backend's name. */
  readonly name: string;
  readonly keep: SandboxKeep;
}

/** How long without use, in milliseconds, counted from the last use. Null = for ever. */
export interface SandboxKeep {
  /** Then it is stopped. */
  readonly running: number | null;
  /** Then its container is removed. */
  readonly container: number | null;
  /** Then its files are deleted. */
  readonly files: number | null;
}

/** `removed`: the container is gone, the files are there. `ending`: a process stops, removes or deletes it. */
export type SandboxState = "running" | "ending" | "stopped" | "removed";

export interface SandboxRecord extends Sandbox {
  readonly state: SandboxState;
  /** The last use: milliseconds since 1970, by the store's clock. */
  readonly used_at: number;
  /** Another one after every use and every change, also within one millisecond. Only compared, never counted. */
  readonly revision: string;
}

export interface SandboxCaps {
  /** Running or ending at once, of all tenants. */
  readonly total: number;
  /** The same of one tenant. */
  readonly tenant: number;
}

export interface SandboxLedger {
  /**
   * Enters a sandbox as running and used now, in one step. One that runs already always may; its name, owner and
   * keep are brought up to date. `ending`: try again shortly; a process that died over it is waited for no longer
   * than a minute. `tenant`, `total`: that cap is reached; `tenant` when both are.
   */
  enter(sandbox: Sandbox, caps: SandboxCaps): Promise<"entered" | "ending" | "total" | "tenant">;
  /** Running ones are used now; others are left alone. */
  touch(ids: readonly string[]): Promise<void>;
  /** Enters what was found without a record, as used now, whatever the caps. Leaves a record that is there alone. */
  adopt(sandbox: Sandbox, state: "running" | "stopped" | "removed"): Promise<void>;
  get(id: string): Promise<SandboxRecord | undefined>;
  /** Those whose time in their state is over, longest ago first; for `ending` ones that is a minute. */
  due(limit: number): Promise<SandboxRecord[]>;
  /** Those that run and were not used for `idleMs`, longest ago first. */
  idle(idleMs: number, limit: number): Promise<SandboxRecord[]>;
  /**
   * Makes it `ending` and returns it as it is then, to be settled with. Undefined when it was used or changed since
   * `seen` was read, or was `ending` for less than a minute: then nothing is changed. Of several, one may begin.
   */
  begin(seen: SandboxRecord): Promise<SandboxRecord | undefined>;
  /**
   * What became of one that `begin` returned, or of one that was seen to be so already. Its last use stays; `gone`
   * deletes the record. False when it was used or changed since `seen` was read, as by others when a minute was
   * not enough: then nothing is changed.
   */
  settle(seen: SandboxRecord, state: "stopped" | "removed" | "gone"): Promise<boolean>;
}
