// What the ledger has of a sandbox, and how it is stored: a document for each, and one that lists those that run or are ending.

import type { Document, DocumentWrite } from "../agent/core/documents.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Owner } from "../protocol/ids.ts";

export interface Sandbox {
  /** Names the container and the volume. */
  readonly id: string;
  readonly owner: Owner;
  /** The backend's name. */
  readonly name: string;
  /** The name of the engine that has its files. */
  readonly engine: string;
  readonly keep: SandboxKeep;
  /** Bytes that its files may have; undefined where that is not known. */
  readonly disk?: number | undefined;
}

/** The engine of a deployment that names none, and of all that was recorded before engines had names. */
export const SOLE_ENGINE = "default";

/** How long without use, in milliseconds, counted from the last use. Null: never. */
export interface SandboxKeep {
  /** Then it is stopped. */
  readonly running: number | null;
  /** Then its container is removed. */
  readonly container: number | null;
  /** Then its files are deleted. */
  readonly files: number | null;
}

/** `removed`: the container is removed, the files exist. `ending`: a process stops, removes or deletes it. */
export type SandboxState = "running" | "ending" | "stopped" | "removed";

export interface SandboxRecord extends Sandbox {
  readonly state: SandboxState;
  /** An engine that may have its files, too, from a move: those are to be deleted. */
  readonly copy?: string | undefined;
  /** The last use: milliseconds since 1970, by the store's clock. */
  readonly used_at: number;
  /** Another one after every use and every change, also within one millisecond. Only compared, never counted. */
  readonly revision: string;
}

/** As it is stored: the revision is the document's version. */
export interface Entry extends Omit<SandboxRecord, "revision"> {
  /** When its time in its state is over; null: never. */
  readonly due_at: number | null;
}

/** Where a sandbox's files are from now on; what is left out stays as it is. */
export interface Where {
  readonly engine?: string;
  /** Null: there is none any more. */
  readonly copy?: string | null;
}

/** How long a process may take to end a sandbox before others believe it dead, in ms. */
const ENDING_MS = 60_000;
/** By a process that is probably alive. */
export const isBeingEnded = ({ state, due_at }: Entry, now: number) =>
  state === "ending" && due_at !== null && due_at > now;

const KEPT = { running: "running", stopped: "container", removed: "files" } as const satisfies Record<
  Exclude<SandboxState, "ending">,
  keyof SandboxKeep
>;

export function moved(entry: Entry, { engine = entry.engine, copy = entry.copy }: Where = {}): Entry {
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
  // Only `writeOf` makes these.
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

/** One that runs or is ending: the caps count these. */
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
