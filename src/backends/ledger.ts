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
import { omitUndefined } from "../lib/omit-undefined.ts";

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

export interface SandboxCaps {
  /** Running or ending at once, of all tenants. */
  readonly total: number;
  /** The same of one tenant. */
  readonly tenant: number;
  /** The same on the sandbox's engine; without it no limit of its own. */
  readonly engine?: number;
  /** Bytes that the files of all sandboxes of one tenant may have, also of those that do not run; without it no limit. */
  readonly tenantDisk?: number;
}

export type ReachedCap = "tenant" | "total" | "engine" | "disk";

/** Of these a sandbox is one, or of all. */
export type SandboxesOf = { readonly tenant?: string; readonly engine?: string };

export interface SandboxLedger {
  /**
   * Enters a sandbox as running and used now, in one step. One that runs already always may; its name, owner and
   * keep are brought up to date. `ending`: try again shortly; a process that died over it is waited for no longer
   * than a minute. `elsewhere`: it is recorded on another engine. `tenant`, `total`, `engine`, `disk`: that cap is reached; the
   * first of them when several are.
   */
  enter(sandbox: Sandbox, caps: SandboxCaps): Promise<"entered" | "ending" | "elsewhere" | ReachedCap>;
  /** Running ones are used now; others are left alone. */
  touch(ids: readonly string[]): Promise<void>;
  /** Records a sandbox that was found without a record, as used now, regardless of the caps. Keeps an existing record. */
  adopt(sandbox: Sandbox, state: "running" | "stopped" | "removed"): Promise<void>;
  get(id: string): Promise<SandboxRecord | undefined>;
  /** All of them, in no order. */
  list(): Promise<SandboxRecord[]>;
  /** Those whose time in their state is over, longest ago first; for `ending` ones that is a minute. */
  due(limit: number): Promise<SandboxRecord[]>;
  /**
   * Those that run and were not used for `idleMs`: first those of the tenant that has most sandboxes, and of a tenant's
   * the one that was used longest ago.
   */
  idle(idleMs: number, limit: number, of?: SandboxesOf): Promise<SandboxRecord[]>;
  /**
   * Makes it `ending` and returns it as it is then, to be settled with. Undefined when it was used or changed since
   * `seen` was read, or was `ending` for less than a minute: then nothing is changed. Of several, one may begin. For a
   * move `copy` names the engine that its files are copied to.
   */
  begin(seen: SandboxRecord, where?: Pick<Where, "copy">): Promise<SandboxRecord | undefined>;
  /** For one that `begin` returned: the minute begins again. Undefined, and nothing is changed, as with `settle`. */
  extend(seen: SandboxRecord, where?: Where): Promise<SandboxRecord | undefined>;
  /**
   * What became of one that `begin` returned, or of one that was seen to be so already. Its last use stays; `gone`
   * deletes the record. False when it was used or changed since `seen` was read, as by others when a minute was
   * not enough: then nothing is changed.
   */
  settle(
    seen: SandboxRecord,
    state: "stopped" | "removed" | "gone",
    where?: Pick<Where, "copy">,
  ): Promise<boolean>;
  /**
   * Forgets what a sandbox has on an engine that is lost for good. `lost`: those were its files, and the record is deleted.
   * `kept`: it was being moved, and has what is on the other engine. Undefined: its files are elsewhere.
   */
  forget(id: string, engine: string): Promise<"lost" | "kept" | undefined>;
}

/** Where a sandbox's files are from now on; what is left out stays as it is. */
interface Where {
  readonly engine?: string;
  /** Null: there is none any more. */
  readonly copy?: string | null;
}

/** How long a process may take to end a sandbox before others believe it dead, in ms. */
const ENDING_MS = 60_000;
const LEDGER: Collection = { kind: "sandboxes" };
/** The document that lists those that run or are ending, each with its tenant and engine: the caps hold across all of them. */
const TAKEN = "taken";

interface Taken {
  readonly tenant: string;
  readonly engine: string;
}

/** As it is stored: the revision is the document's version. */
interface Entry extends Omit<SandboxRecord, "revision"> {
  /** When its time in its state is over; null: never. */
  readonly due_at: number | null;
}

/** Caps and states are compared and changed in one write, so of processes that decide at once one has to decide again. */
export function createLedger(documents: Documents): SandboxLedger {
  return {
    enter: (sandbox, caps) =>
      changed(sandbox.id, async ({ found, taken, now }) => {
        if (found && found.engine !== sandbox.engine) return { result: "elsewhere" };
        if (found && isBeingEnded(found, now)) return { result: "ending" };
        if (found?.state !== "running") {
          const others = [...taken].flatMap(([id, each]) => (id === sandbox.id ? [] : [each]));
          const neighbours = others.filter(({ engine }) => engine === sandbox.engine);
          const own = others.filter(({ tenant }) => tenant === sandbox.owner.tenant);
          if (own.length >= caps.tenant) return { result: "tenant" };
          if (others.length >= caps.total) return { result: "total" };
          if (neighbours.length >= (caps.engine ?? Number.POSITIVE_INFINITY)) return { result: "engine" };
        }
        if (await exceedsDisk(sandbox, found, caps)) return { result: "disk" };
        // A smaller disk is not taken away.
        const disk = sandbox.disk && Math.max(sandbox.disk, diskOf(found));
        const entry = entryOf({ ...sandbox, disk, copy: found?.copy }, "running", now, now);
        return { entry, result: "entered" };
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

    async list() {
      const all = await documents.list(LEDGER);
      return all.filter(({ key }) => key !== TAKEN).map(recordOf);
    },

    async due(limit) {
      return (await documents.due(LEDGER, limit)).map(recordOf);
    },

    async idle(idleMs, limit, { tenant, engine } = {}) {
      const { found: list } = await documents.read(LEDGER, [TAKEN]);
      const taken = takenIn(list[0]);
      const ids = [...taken]
        .filter(([, of]) => tenant === undefined || of.tenant === tenant)
        .filter(([, of]) => engine === undefined || of.engine === engine)
        .map(([id]) => id);
      const { found, now } = await documents.read(LEDGER, ids);
      const counts = countsOf(taken.values().map((of) => of.tenant));
      const held = ({ owner }: SandboxRecord) => counts.get(owner.tenant) ?? 0;
      return found
        .flatMap((document) => (document ? recordOf(document) : []))
        .filter(({ state, used_at }) => state === "running" && used_at <= now - idleMs)
        .sort((a, b) => held(b) - held(a) || a.used_at - b.used_at || (a.id < b.id ? -1 : 1))
        .slice(0, limit);
    },

    begin: (seen, where) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision || isBeingEnded(found, now)) return { result: undefined };
        const entry = entryOf(at(found, where), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    extend: (seen, where) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision) return { result: undefined };
        const entry = entryOf(at(found, where), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    settle: (seen, state, where) =>
      changed<boolean>(seen.id, ({ found, revision, now }) => {
        if (!found || revision !== seen.revision) return { result: false };
        const entry = state === "gone" ? null : entryOf(at(found, where), state, found.used_at, now);
        return { entry, result: true };
      }),

    forget: (id, engine) =>
      changed<"lost" | "kept" | undefined>(id, ({ found, now }) => {
        const alone = found && at(found, { copy: null });
        if (alone?.engine === engine) {
          if (found?.copy === undefined) return { entry: null, result: "lost" };
          const moved = { ...alone, engine: found.copy };
          return { entry: entryOf(moved, "removed", found.used_at, now), result: "kept" };
        }
        if (!alone || found?.copy !== engine) return { result: undefined };
        return { entry: entryOf(alone, found.state, found.used_at, now), result: undefined };
      }),
  };

  interface Read {
    readonly found: Entry | undefined;
    readonly revision: string | undefined;
    readonly taken: ReadonlyMap<string, Taken>;
    readonly now: number;
    /** The revision of the record that is written. */
    readonly version: string;
  }

  interface Decided<T> {
    /** Null deletes the entry, undefined leaves it. */
    readonly entry?: Entry | null;
    readonly result: T;
  }

  /**
   * Whether the tenant's sandboxes would have more disk than they may with a new one, or with one that grows. What is entered
   * meanwhile is seen: disk is added together with a write of the list of those that run, after which all is decided again.
   */
  async function exceedsDisk(sandbox: Sandbox, found: Entry | undefined, { tenantDisk }: SandboxCaps) {
    const { id, owner, disk = 0 } = sandbox;
    // Of one from before disks were recorded it is not known, and its files stay within reach.
    const isKnown = !found || found.disk !== undefined;
    if (tenantDisk === undefined || !isKnown || disk <= diskOf(found)) return false;
    const all = (await documents.list(LEDGER)).filter(({ key }) => key !== TAKEN && key !== id);
    const own = all.map(read).filter((each) => each.owner.tenant === owner.tenant);
    return own.reduce((sum, each) => sum + diskOf(each), disk) > tenantDisk;
  }

  function changed<T>(id: string, decide: (read: Read) => Decided<T> | Promise<Decided<T>>): Promise<T> {
    return change(documents, { collection: LEDGER, keys: [id, TAKEN] }, async ({ found, now, version }) => {
      const [document, list] = found;
      const taken = takenIn(list);
      const entry = document && read(document);
      const decided = await decide({ found: entry, revision: document?.version, taken, now, version });
      if (decided.entry === undefined) return { result: decided.result };
      const writes = [write(id, document, decided.entry)];
      const before = taken.get(id);
      const after = takenBy(decided.entry);
      const isSame = before?.tenant === after?.tenant && before?.engine === after?.engine;
      if (isSame && diskOf(decided.entry) <= diskOf(entry)) return { writes, result: decided.result };
      if (after) taken.set(id, after);
      else taken.delete(id);
      writes.push({ key: TAKEN, seen: list?.version, body: bodyOf(taken) });
      return { writes, result: decided.result };
    });
  }
}

const diskOf = (entry: Entry | null | undefined) => entry?.disk ?? 0;

/** By a process that may well be alive. */
const isBeingEnded = ({ state, due_at }: Entry, now: number) =>
  state === "ending" && due_at !== null && due_at > now;

const KEPT = { running: "running", stopped: "container", removed: "files" } as const satisfies Record<
  Exclude<SandboxState, "ending">,
  keyof SandboxKeep
>;

function at(entry: Entry, { engine = entry.engine, copy = entry.copy }: Where = {}): Entry {
  return { ...entry, engine, copy: copy ?? undefined };
}

function entryOf(
  { id, owner, name, engine, keep, disk, copy }: Sandbox & Pick<Entry, "copy">,
  state: SandboxState,
  used_at: number,
  now: number,
): Entry {
  const kept = state === "ending" ? null : keep[KEPT[state]];
  const due_at = state === "ending" ? now + ENDING_MS : kept === null ? null : used_at + kept;
  return { id, owner, name, engine, keep, state, used_at, due_at, ...omitUndefined({ disk, copy }) };
}

function write(id: string, before: Document | undefined, entry: Entry | null): DocumentWrite {
  if (entry === null) return { key: id, seen: before?.version, body: undefined };
  const { id: _, owner, ...rest } = entry;
  const stored = { owner: [owner.tenant, owner.user], ...rest };
  const body = JSON.stringify(stored);
  return { key: id, seen: before?.version, body, due: entry.due_at };
}

function read({ key, body }: Document): Entry {
  // Only `write` makes these.
  const { owner, ...entry } = JSON.parse(body) as Omit<Entry, "id" | "owner"> & { owner: [string, string] };
  return {
    ...entry,
    id: key,
    owner: { tenant: owner[0], user: owner[1] },
    engine: entry.engine ?? SOLE_ENGINE,
  };
}

const recordOf = (document: Document) => shown(read(document), document.version);

const shown = ({ due_at: _, ...entry }: Entry, revision: string): SandboxRecord => ({ ...entry, revision });

function takenBy(entry: Entry | null): Taken | undefined {
  if (entry?.state !== "running" && entry?.state !== "ending") return undefined;
  return { tenant: entry.owner.tenant, engine: entry.engine };
}

const bodyOf = (taken: ReadonlyMap<string, Taken>) =>
  JSON.stringify([...taken].map(([id, { tenant, engine }]) => [id, tenant, engine]));

function takenIn(list: Document | undefined): Map<string, Taken> {
  const stored = list ? (JSON.parse(list.body) as [id: string, tenant: string, engine?: string][]) : [];
  return new Map(stored.map(([id, tenant, engine = SOLE_ENGINE]) => [id, { tenant, engine }]));
}
