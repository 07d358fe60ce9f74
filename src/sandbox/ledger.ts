// The ledger of sandboxes: who owns each one, its state, and its last use. All processes of a deployment share the
// ledger, so no two of them create, stop or remove the same sandbox at the same time.

import { type Collection, change, type Document, type Documents } from "../agent/core/documents.ts";
import { AppError } from "../agent/core/errors.ts";
import { countsOf } from "../agent/core/shares.ts";
import {
  diskOf,
  exceedsDisk,
  growsDisk,
  type ReachedCap,
  reachedCap,
  type SandboxCaps,
} from "./sandbox-caps.ts";
import {
  bodyOf,
  type CountedSandbox,
  type Entry,
  entryOf,
  isBeingEnded,
  moved,
  readEntry,
  recordOf,
  type Sandbox,
  type SandboxLocation,
  type SandboxRecord,
  shown,
  takenBy,
  takenIn,
  writeOf,
} from "./sandbox-records.ts";

/** Limits a query to sandboxes of a tenant or an engine. An empty filter matches all sandboxes. */
export type SandboxesOf = { readonly tenant?: string; readonly engine?: string };

export interface SandboxLedger {
  /**
   * Records a sandbox as running and used now, in one step. A sandbox that is already running always enters, and its name,
   * owner and `keep` are updated.
   *
   * - `ending`: a process is ending it. Try again shortly. After a minute, that process counts as dead.
   * - `elsewhere`: another engine is recorded for it.
   * - `tenant`, `total`, `engine`, `disk`: the first cap that it would exceed.
   */
  enter(sandbox: Sandbox, caps: SandboxCaps): Promise<"entered" | "ending" | "elsewhere" | ReachedCap>;
  /** Marks running sandboxes as used now. Skips all others. */
  touch(ids: readonly string[]): Promise<void>;
  /**
   * Records a sandbox that was found without a record, as used now. Ignores the caps. Keeps an existing
   * record.
   */
  adopt(sandbox: Sandbox, state: "running" | "stopped" | "removed"): Promise<void>;
  get(id: string): Promise<SandboxRecord | undefined>;
  /** Returns all records in no particular order. */
  list(): Promise<SandboxRecord[]>;
  /**
   * Returns sandboxes whose time in their current state has expired, earliest first. In the state `ending`, that time
   * is one minute.
   */
  due(limit: number): Promise<SandboxRecord[]>;
  /**
   * Returns running sandboxes unused for `idleMs`. The tenant with the most sandboxes comes first. Within a tenant, the
   * least recently used sandbox comes first.
   */
  idle(idleMs: number, limit: number, of?: SandboxesOf): Promise<SandboxRecord[]>;
  /**
   * Marks the sandbox as `ending` and returns the new record for `settle`. If several callers compete, only one
   * succeeds. Returns undefined and does nothing if the sandbox was used or changed since `seen` was read, or has
   * been `ending` for less than a minute. For a move, `copy` names the target engine.
   */
  begin(seen: SandboxRecord, location?: Pick<SandboxLocation, "copy">): Promise<SandboxRecord | undefined>;
  /**
   * Restarts the one-minute period of a record that `begin` returned. Returns undefined and does nothing in the same cases
   * as `settle`.
   */
  extend(seen: SandboxRecord, location?: SandboxLocation): Promise<SandboxRecord | undefined>;
  /**
   * Records the outcome for a record that `begin` returned, or that was already seen in that state. Keeps the time of
   * the last use. `gone` deletes the record. Returns false and does nothing if the sandbox was used or changed since
   * `seen` was read. For example, this happens when one minute was not enough and another process took over.
   */
  settle(
    seen: SandboxRecord,
    state: "stopped" | "removed" | "gone",
    location?: Pick<SandboxLocation, "copy">,
  ): Promise<boolean>;
  /**
   * Removes a permanently lost engine from the sandbox's record. `lost`: the engine had the files, and the record is
   * deleted. `kept`: a move was in progress, and the files on the other engine remain. Returns undefined if the
   * files are elsewhere.
   */
  forget(id: string, engine: string): Promise<"lost" | "kept" | undefined>;
}

const LEDGER: Collection = { kind: "sandboxes" };
/**
 * The document that lists the running and ending sandboxes with their tenant and engine. The caps apply to their
 * total number.
 */
const TAKEN = "taken";

/**
 * Creates the ledger. It checks caps and changes states in a single write. If several processes decide at the same
 * time, one of them succeeds and the others repeat their decision.
 */
export function createLedger(documents: Documents): SandboxLedger {
  return {
    enter: (sandbox, caps) =>
      changed(sandbox.id, async ({ found, taken, now }) => {
        if (found && found.engine !== sandbox.engine) return { result: "elsewhere" };
        if (found && isBeingEnded(found, now)) return { result: "ending" };
        const others = [...taken].flatMap(([id, each]) => (id === sandbox.id ? [] : [each]));
        const reached = found?.state === "running" ? undefined : reachedCap(sandbox, others, caps);
        if (reached) return { result: reached };
        // If another sandbox is entered at the same time, the list of running sandboxes changes and this decision is
        // repeated. The other sandbox is therefore counted too.
        if (growsDisk(sandbox, found, caps) && exceedsDisk(sandbox, await allBut(sandbox.id), caps))
          return { result: "disk" };
        // If a sandbox already has a larger disk, it keeps that disk.
        const disk = sandbox.disk && Math.max(sandbox.disk, diskOf(found));
        const entry = entryOf({ ...sandbox, disk, copy: found?.copy }, "running", now, now);
        return { entry, result: "entered" };
      }),

    async touch(ids) {
      const unique = [...new Set(ids)];
      if (unique.length === 0) return;
      await change(documents, { collection: LEDGER, keys: unique }, ({ found, now }) => {
        const writes = found.flatMap((document) => {
          const entry = document && readEntry(document);
          return entry?.state === "running"
            ? writeOf(entry.id, document, entryOf(entry, "running", now, now))
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
      return (await all()).map(recordOf);
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

    begin: (seen, location) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision || isBeingEnded(found, now)) return { result: undefined };
        const entry = entryOf(moved(found, location), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    extend: (seen, location) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision) return { result: undefined };
        const entry = entryOf(moved(found, location), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    settle: (seen, state, location) =>
      changed<boolean>(seen.id, ({ found, revision, now }) => {
        if (!found || revision !== seen.revision) return { result: false };
        const entry = state === "gone" ? null : entryOf(moved(found, location), state, found.used_at, now);
        return { entry, result: true };
      }),

    forget: (id, engine) =>
      changed<"lost" | "kept" | undefined>(id, ({ found, now }) => {
        const alone = found && moved(found, { copy: null });
        if (alone?.engine === engine) {
          if (found?.copy === undefined) return { entry: null, result: "lost" };
          const onlyCopy = { ...alone, engine: found.copy };
          return { entry: entryOf(onlyCopy, "removed", found.used_at, now), result: "kept" };
        }
        if (!alone || found?.copy !== engine) return { result: undefined };
        return { entry: entryOf(alone, found.state, found.used_at, now), result: undefined };
      }),
  };

  interface LedgerEntry {
    readonly found: Entry | undefined;
    readonly revision: string | undefined;
    readonly taken: ReadonlyMap<string, CountedSandbox>;
    readonly now: number;
    /** The revision of the written record. */
    readonly version: string;
  }

  interface LedgerDecision<T> {
    /** Null deletes the entry. Undefined keeps it. */
    readonly entry?: Entry | null;
    readonly result: T;
  }

  async function all(): Promise<Document[]> {
    return (await documents.list(LEDGER)).filter(({ key }) => key !== TAKEN);
  }

  async function allBut(id: string): Promise<Entry[]> {
    return (await all()).filter(({ key }) => key !== id).map(readEntry);
  }

  function changed<T>(
    id: string,
    decide: (read: LedgerEntry) => LedgerDecision<T> | Promise<LedgerDecision<T>>,
  ): Promise<T> {
    return change(documents, { collection: LEDGER, keys: [id, TAKEN] }, async ({ found, now, version }) => {
      const [document, list] = found;
      const taken = takenIn(list);
      const entry = document && readEntry(document);
      const decided = await decide({ found: entry, revision: document?.version, taken, now, version });
      if (decided.entry === undefined) return { result: decided.result };
      const writes = [writeOf(id, document, decided.entry)];
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

/** The result of removing a permanently lost engine. */
export interface EngineRemoval {
  /** The number of sandboxes whose files were on the engine. */
  readonly lost: number;
  /** The number of sandboxes that were being moved. They continue with the files on the other engine. */
  readonly kept: number;
}

/**
 * Removes a permanently lost engine and all files on it from the ledger. The users get new workspaces on other engines.
 * Safe to repeat. Throws `invalid_request` if the settings still name the engine, because it would accept sandboxes
 * again.
 */
export async function forgetEngine(
  ledger: Pick<SandboxLedger, "list" | "forget">,
  named: readonly string[],
  engine: string,
): Promise<EngineRemoval> {
  if (named.includes(engine))
    throw new AppError(
      "invalid_request",
      `This server uses the engine \`${engine}\`. Remove it from \`backends.docker.engines\` of all servers and restart them first.`,
    );
  const counts = { lost: 0, kept: 0 };
  for (const { id } of await ledger.list()) {
    const outcome = await ledger.forget(id, engine);
    if (outcome) counts[outcome]++;
  }
  return counts;
}
