// The services that this room needs. The composition root passes in services that belong to other rooms.

import type { BackendPool } from "../../agent/core/backend.ts";
import type { Documents } from "../../agent/core/documents.ts";
import type { Owners } from "../../agent/core/owners.ts";
import type { Page } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Quotas } from "../quotas/index.ts";
import type { Runs } from "../runs/executor.ts";

/** A sandbox as recorded in the ledger. */
export interface SandboxEntry {
  readonly id: string;
  readonly owner: Owner;
  /** The name of the backend. */
  readonly name: string;
  /** The name of the engine that has the sandbox's files. */
  readonly engine: string;
  readonly state: "running" | "ending" | "stopped" | "removed";
  /** The time of the last use, in milliseconds since 1970. */
  readonly used_at: number;
}

/** The API keys of a user. */
export interface UserKeys {
  /** Returns the ids of all keys of the owner, including expired and revoked ones. */
  of(owner: Owner): Promise<readonly { readonly id: string; readonly [about: string]: unknown }[]>;
  revoke(id: string): Promise<unknown>;
  /** Revokes the key and removes its record. */
  remove(id: string): Promise<unknown>;
}

/** Records of users other than threads, for example schedules. */
export interface UserRecords {
  /** The `type` of the lines that contain these records in an export. */
  readonly type: string;
  /** Returns a page of a user's records. */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<object>>;
  /** Deletes all records of a user. Returns the number deleted. */
  deleteAll(owner: Owner): Promise<number>;
  /**
   * Deletes everything that the tenant's records contain about a user. Called last, because runs add to these records
   * when they end.
   */
  deleteMentions?(owner: Owner): Promise<void>;
}

export interface AdminServices {
  readonly records: readonly UserRecords[];
  readonly runs: Runs;
  readonly owners: Owners;
  readonly documents: Documents;
  readonly quotas: Quotas;
  readonly backends: Pick<BackendPool, "erase">;
  /** Absent if users have no API keys. */
  readonly keys?: UserKeys | undefined;
  /** Returns the sandboxes in no particular order. */
  readonly sandboxes: () => Promise<readonly SandboxEntry[]>;
  /** Removes the sandboxes of a permanently lost engine. Throws `invalid_request` for an engine in use. */
  readonly forgetEngine: (name: string) => Promise<{ readonly lost: number; readonly kept: number }>;
  /** Copies all data while the server runs. Throws `invalid_request` for a store that does not use files. */
  readonly backUp: () => Promise<{
    readonly path: string;
    readonly files: number;
    readonly bytes: number;
    readonly workspaces_left_out: number;
  }>;
  /** Returns the currently configured agents. */
  readonly agents: () => readonly { readonly name: string }[];
}
