// The ledger of sandboxes: who has which, its state, and its last use. All processes of a deployment share it, so that no
// two of them create, stop or remove the same sandbox at once.

import {
  type Collection,
  change,
  type Document,
  type Documents,
  type DocumentWrite,
} from "../core/documents.ts";
import type { Owner } from "../core/ids.ts";
import { countsOf } from "../core/shares.ts";

export interface Sandbox {
  /** Names the container and the volume. */
  readonly id: string;
  readonly owner: Owner;
  /** The backend's name. */
  readonly name: string;
  readonly keep: SandboxKeep;
}

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
  /** Records a sandbox that was found without a record, as used now, regardless of the caps. Keeps an existing record. */
  adopt(sandbox: Sandbox, state: "running" | "stopped" | "removed"): Promise<void>;
  get(id: string): Promise<SandboxRecord | undefined>;
  /** Those whose time in their state is over, longest ago first; for `ending` ones that is a minute. */
  due(limit: number): Promise<SandboxRecord[]>;
  /**
   * Those that run and were not used for `idleMs`, of one tenant or of all: first those of the tenant that has most
   * sandboxes, and of a tenant's the one that was used longest ago.
   */
  idle(idleMs: number, limit: number, tenant?: string): Promise<SandboxRecord[]>;
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

/** How long a process may take to end a sandbox before others believe it dead, in ms. */
const ENDING_MS = 60_000;
const LEDGER: Collection = { kind: "sandboxes" };
/** The document that lists those that run or are ending, each with its tenant: the caps hold across all of them. */
const TAKEN = "taken";

/** As it is stored: the revision is the document's version. */
interface Entry extends Omit<SandboxRecord, "revision"> {
  /** When its time in its state is over; null: never. */
  readonly due_at: number | null;
}

/** Caps and states are compared and changed in one write, so of processes that decide at once one has to decide again. */
export function createLedger(documents: Documents): SandboxLedger {
  return {
    enter: (sandbox, caps) =>
      changed(sandbox.id, ({ found, taken, now }) => {
        if (found && isBeingEnded(found, now)) return { result: "ending" };
        if (found?.state !== "running") {
          const others = [...taken].filter(([id]) => id !== sandbox.id);
          const own = others.filter(([, tenant]) => tenant === sandbox.owner.tenant);
          if (own.length >= caps.tenant) return { result: "tenant" };
          if (others.length >= caps.total) return { result: "total" };
        }
        return { entry: entryOf(sandbox, "running", now, now), result: "entered" };
      }),

    async touch(ids) {
      const unique = [...new Set(ids)];
      if (unique.length === 0) return;
      await change(documents, { collection: LEDGER, keys: unique }, ({ found, now }) => {
        const writes = found.flatMap((document) => {
          const entry = document && read(document);
          return entry?.state === "running"
            ? write(entry.id, document, entryOf(entry, "running", now, now))
            : [];
        });
        return { writes, result: undefined };
      });
    },

    adopt: (sandbox, state) =>
      changed(sandbox.id, ({ found, now }) =>
        found ? { result: undefined } : { entry: entryOf(sandbox, state, now, now), result: undefined },
      ),

    async get(id) {
      const [document] = (await documents.read(LEDGER, [id])).found;
      return document && recordOf(document);
    },

    async due(limit) {
      return (await documents.due(LEDGER, limit)).map(recordOf);
    },

    async idle(idleMs, limit, tenant) {
      const { found: list } = await documents.read(LEDGER, [TAKEN]);
      const taken = takenIn(list[0]);
      const ids = [...taken]
        .filter(([, owner]) => tenant === undefined || owner === tenant)
        .map(([id]) => id);
      const { found, now } = await documents.read(LEDGER, ids);
      const counts = countsOf(taken.values());
      const held = ({ owner }: SandboxRecord) => counts.get(owner.tenant) ?? 0;
      return found
        .flatMap((document) => (document ? recordOf(document) : []))
        .filter(({ state, used_at }) => state === "running" && used_at <= now - idleMs)
        .sort((a, b) => held(b) - held(a) || a.used_at - b.used_at || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
    },

    begin: (seen) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision || isBeingEnded(found, now)) return { result: undefined };
        const entry = entryOf(found, "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    settle: (seen, state) =>
      changed<boolean>(seen.id, ({ found, revision, now }) => {
        if (!found || revision !== seen.revision) return { result: false };
        return { entry: state === "gone" ? null : entryOf(found, state, found.used_at, now), result: true };
      }),
  };

  interface Read {
    readonly found: Entry | undefined;
    readonly revision: string | undefined;
    readonly taken: ReadonlyMap<string, string>;
    readonly now: number;
    /** The revision of the record that is written. */
    readonly version: string;
  }

  /** Null deletes the entry, undefined leaves it. */
  function changed<T>(id: string, decide: (read: Read) => { entry?: Entry | null; result: T }): Promise<T> {
    return change(documents, { collection: LEDGER, keys: [id, TAKEN] }, ({ found, now, version }) => {
      const [document, list] = found;
      const taken = takenIn(list);
      const entry = document && read(document);
      const decided = decide({ found: entry, revision: document?.version, taken, now, version });
      if (decided.entry === undefined) return { result: decided.result };
      const writes = [write(id, document, decided.entry)];
      const isTaken = decided.entry?.state === "running" || decided.entry?.state === "ending";
      const tenant = isTaken ? decided.entry?.owner.tenant : undefined;
      if (taken.get(id) === tenant) return { writes, result: decided.result };
      if (tenant === undefined) taken.delete(id);
      else taken.set(id, tenant);
      writes.push({ key: TAKEN, seen: list?.version, body: JSON.stringify([...taken]) });
      return { writes, result: decided.result };
    });
  }
}

/** By a process that may well be alive. */
const isBeingEnded = ({ state, due_at }: Entry, now: number) =>
  state === "ending" && due_at !== null && due_at > now;

const KEPT = { running: "running", stopped: "container", removed: "files" } as const satisfies Record<
  Exclude<SandboxState, "ending">,
  keyof SandboxKeep
>;

function entryOf(
  { id, owner, name, keep }: Sandbox,
  state: SandboxState,
  used_at: number,
  now: number,
): Entry {
  const kept = state === "ending" ? null : keep[KEPT[state]];
  const due_at = state === "ending" ? now + ENDING_MS : kept === null ? null : used_at + kept;
  return { id, owner, name, keep, state, used_at, due_at };
}

function write(id: string, before: Document | undefined, entry: Entry | null): DocumentWrite {
  if (entry === null) return { key: id, seen: before?.version, body: undefined };
  const { owner, name, keep, state, used_at, due_at } = entry;
  const body = JSON.stringify({ owner: [owner.tenant, owner.user], name, keep, state, used_at, due_at });
  return { key: id, seen: before?.version, body, due: due_at };
}

function read({ key, body }: Document): Entry {
  // Only `write` makes these.
  const { owner, ...entry } = JSON.parse(body) as Omit<Entry, "id" | "owner"> & { owner: [string, string] };
  return { ...entry, id: key, owner: { tenant: owner[0], user: owner[1] } };
}

const recordOf = (document: Document) => shown(read(document), document.version);

const shown = ({ due_at: _, ...entry }: Entry, revision: string): SandboxRecord => ({ ...entry, revision });

const takenIn = (list: Document | undefined): Map<string, string> =>
  new Map(list ? (JSON.parse(list.body) as [id: string, tenant: string][]) : []);
