// What this room works on. The composition root gives it the parts that other rooms own.

import type { BackendPool } from "../../agent/core/backend.ts";
import type { Owners } from "../../agent/core/owners.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Quotas } from "../quotas/index.ts";
import type { Runs } from "../runs/executor.ts";

/** A sandbox as its ledger has it. */
export interface SandboxEntry {
  readonly id: string;
  readonly owner: Owner;
  /** The backend's name. */
  readonly name: string;
  /** The name of the engine with its files. */
  readonly engine: string;
  readonly state: "running" | "ending" | "stopped" | "removed";
  /** Milliseconds since 1970. */
  readonly used_at: number;
}

/** The API keys of a user. */
export interface UserKeys {
  /** The ids of all of them, those that have ended among them. */
  of(owner: Owner): Promise<readonly { readonly id: string; readonly [about: string]: unknown }[]>;
  revoke(id: string): Promise<unknown>;
  /** Removes the record as well. */
  remove(id: string): Promise<unknown>;
}

export interface AdminServices {
  readonly runs: Runs;
  readonly owners: Owners;
  readonly quotas: Quotas;
  readonly backends: Pick<BackendPool, "erase">;
  /** Absent where users have no API keys. */
  readonly keys?: UserKeys | undefined;
  /** In no order. */
  readonly sandboxes: () => Promise<readonly SandboxEntry[]>;
  /** Gives up the sandboxes of an engine that is lost for good. Throws `invalid_request` for one that is in use. */
  readonly forgetEngine: (name: string) => Promise<{ readonly lost: number; readonly kept: number }>;
  /** Copies everything while the server runs. Throws `invalid_request` for a store that does not lie in files. */
  readonly backUp: () => Promise<{
    readonly path: string;
    readonly files: number;
    readonly bytes: number;
    readonly workspaces_left_out: number;
  }>;
  /** The agents of today. */
  readonly agents: () => readonly { readonly name: string }[];
}
