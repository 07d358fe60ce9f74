// The ledger's records and their storage: one document per sandbox, and a document that lists the running and
// ending sandboxes.

import type { Document, DocumentWrite } from "../agent/core/documents.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Owner } from "../protocol/ids.ts";

export interface Sandbox {
  /** The id, which is also the name of the container and the volume. */
  readonly id: string;
  readonly owner: Owner;
  /** The backend's name. */
  readonly name: string;
  /** The name of the engine that has the sandbox's files. */
  readonly engine: string;
  readonly keep: SandboxKeep;
  /** The maximum number of bytes for the sandbox's files. Undefined if unknown. */
  readonly disk?: number | undefined;
}

/**
 * The name of the engine in a deployment that does not name its engine. Older records, which do not name an engine,
 * belong to this engine too.
 */
export const SOLE_ENGINE = "default";

/** The number of milliseconds after the last use of a sandbox until each step. Null means never. */
export interface SandboxKeep {
  /** The time until the sandbox is stopped. */
  readonly running: number | null;
  /** The time until its container is removed. */
  readonly container: number | null;
  /** The time until its files are deleted. */
  readonly files: number | null;
}

/**
 * `removed`: the container was removed, but the files still exist. `ending`: a process is stopping, removing or
 * deleting the sandbox.
 */
export type SandboxState = "running" | "ending" | "stopped" | "removed";

export interface SandboxRecord extends Sandbox {
  readonly state: SandboxState;
  /** Another engine that may have a copy of the files from a move. This copy must be deleted. */
  readonly copy?: string | undefined;
  /** The time of the last use in milliseconds since 1970, by the store's clock. */
  readonly used_at: number;
  /**
   * Changes with every use and every change, even within one millisecond. Compare revisions only for
   * equality.
   */
  readonly revision: string;
}

/** The stored form. The revision is the document's version. */
export interface Entry extends Omit<SandboxRecord, "revision"> {
  /** The time at which the current state expires. Null means never. */
  readonly due_at: number | null;
}

/** The new location of a sandbox's files. Omitted fields keep their values. */
export interface SandboxLocation {
  readonly engine?: string;
  /** Null means that the copy no longer exists. */
  readonly copy?: string | null;
}

/** How long a process may take to end a sandbox before others consider the process dead, in milliseconds. */
const ENDING_MS = 60_000;
/** True if a process that is probably alive is ending it. */
export const isBeingEnded = ({ state, due_at }: Entry, now: number) =>
  state === "ending" && due_at !== null && due_at > now;

const KEPT = { running: "running", stopped: "container", removed: "files" } as const satisfies Record<
  Exclude<SandboxState, "ending">,
  keyof SandboxKeep
>;

export function moved(
  entry: Entry,
  { engine = entry.engine, copy = entry.copy }: SandboxLocation = {},
): Entry {
  return { ...entry, engine, copy: copy ?? undefined };
}

export function entryOf(
  { id, owner, name, engine, keep, disk, copy }: Sandbox & Pick<Entry, "copy">,
  state: SandboxState,
  used_at: number,
  now: number,
): Entry {
  const kept = state === "ending" ? null : keep[KEPT[state]];
  const due_at = state === "ending" ? now + ENDING_MS : kept === null ? null : used_at + kept;
  return { id, owner, name, engine, keep, state, used_at, due_at, ...omitUndefined({ disk, copy }) };
}

export function writeOf(id: string, before: Document | undefined, entry: Entry | null): DocumentWrite {
  if (entry === null) return { key: id, seen: before?.version, body: undefined };
  const { id: _, owner, ...rest } = entry;
  const stored = { owner: [owner.tenant, owner.user], ...rest };
  const body = JSON.stringify(stored);
  return { key: id, seen: before?.version, body, due: entry.due_at };
}

export function readEntry({ key, body }: Document): Entry {
  // Only `writeOf` creates these bodies.
  const { owner, ...entry } = JSON.parse(body) as Omit<Entry, "id" | "owner"> & { owner: [string, string] };
  return {
    ...entry,
    id: key,
    owner: { tenant: owner[0], user: owner[1] },
    engine: entry.engine ?? SOLE_ENGINE,
  };
}

export const recordOf = (document: Document) => shown(readEntry(document), document.version);

export const shown = ({ due_at: _, ...entry }: Entry, revision: string): SandboxRecord => ({
  ...entry,
  revision,
});

/** A running or ending sandbox, which counts towards the caps. */
export interface CountedSandbox {
  readonly tenant: string;
  readonly engine: string;
}

export function takenBy(entry: Entry | null): CountedSandbox | undefined {
  if (entry?.state !== "running" && entry?.state !== "ending") return undefined;
  return { tenant: entry.owner.tenant, engine: entry.engine };
}

export const bodyOf = (taken: ReadonlyMap<string, CountedSandbox>) =>
  JSON.stringify([...taken].map(([id, { tenant, engine }]) => [id, tenant, engine]));

export function takenIn(list: Document | undefined): Map<string, CountedSandbox> {
  const stored = list ? (JSON.parse(list.body) as [id: string, tenant: string, engine?: string][]) : [];
  return new Map(stored.map(([id, tenant, engine = SOLE_ENGINE]) => [id, { tenant, engine }]));
}
