// The ledger of sandboxes: who has which, its state, and its last use. All processes of a deployment share it, so that no
// two of them create, stop or remove the same sandbox at once.

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
  type SandboxRecord,
  shown,
  takenBy,
  takenIn,
  type Where,
  writeOf,
} from "./sandbox-records.ts";

/** Of these a sandbox is one, or of all. */
export type SandboxesOf = { readonly tenant?: string; readonly engine?: string };

export interface SandboxLedger {
  /**
   * Records a sandbox as running and used now, in one step. One that is running already may always be entered; its name, owner
   * and `keep` are updated. `ending`: try again shortly; after a minute a process that ends it is taken for dead. `elsewhere`:
   * it is recorded on another engine. `tenant`, `total`, `engine`, `disk`: the first of these caps that is reached.
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
   * Makes it `ending` and returns the new record, which `settle` takes. Undefined, with no effect, when it was used or changed
   * since `seen` was read, or has been `ending` for less than a minute. Of several callers, one may begin. For a move, `copy`
   * names the engine that its files are copied to.
   */
  begin(seen: SandboxRecord, where?: Pick<Where, "copy">): Promise<SandboxRecord | undefined>;
  /** For one that `begin` returned: its minute starts again. Undefined, with no effect, as with `settle`. */
  extend(seen: SandboxRecord, where?: Where): Promise<SandboxRecord | undefined>;
  /**
   * Records what became of one that `begin` returned, or that was already seen in that state. Its last use stays; `gone`
   * deletes the record. False, with no effect, when it was used or changed since `seen` was read, for example by another
   * process when a minute was not enough.
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

const LEDGER: Collection = { kind: "sandboxes" };
/** The document that lists those that run or are ending, each with its tenant and engine: the caps hold across all of them. */
const TAKEN = "taken";

/** Caps and states are compared and changed in one write, so of processes that decide at once one has to decide again. */
export function createLedger(documents: Documents): SandboxLedger {
  return {
    enter: (sandbox, caps) =>
      changed(sandbox.id, async ({ found, taken, now }) => {
        if (found && found.engine !== sandbox.engine) return { result: "elsewhere" };
        if (found && isBeingEnded(found, now)) return { result: "ending" };
        const others = [...taken].flatMap(([id, each]) => (id === sandbox.id ? [] : [each]));
        const reached = found?.state === "running" ? undefined : reachedCap(sandbox, others, caps);
        if (reached) return { result: reached };
        // What others enter meanwhile counts as well: it changes the list of those that run, after which all is decided again.
        if (growsDisk(sandbox, found, caps) && exceedsDisk(sandbox, await allBut(sandbox.id), caps))
          return { result: "disk" };
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

    begin: (seen, where) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision || isBeingEnded(found, now)) return { result: undefined };
        const entry = entryOf(moved(found, where), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    extend: (seen, where) =>
      changed(seen.id, ({ found, revision, now, version }) => {
        if (!found || revision !== seen.revision) return { result: undefined };
        const entry = entryOf(moved(found, where), "ending", found.used_at, now);
        return { entry, result: shown(entry, version) };
      }),

    settle: (seen, state, where) =>
      changed<boolean>(seen.id, ({ found, revision, now }) => {
        if (!found || revision !== seen.revision) return { result: false };
        const entry = state === "gone" ? null : entryOf(moved(found, where), state, found.used_at, now);
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
    /** The revision of the record that is written. */
    readonly version: string;
  }

  interface Decided<T> {
    /** Null deletes the entry, undefined leaves it. */
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
    decide: (read: LedgerEntry) => Decided<T> | Promise<Decided<T>>,
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

/** What was known of an engine that is lost for good. */
export interface Forgotten {
  /** Sandboxes whose files were there. */
  readonly lost: number;
  /** Those that were being moved: they continue with what the other engine has of them. */
  readonly kept: number;
}

/**
 * Forgets an engine that is lost for good, with all files on it: its users get new workspaces on the others. May be repeated. Throws `invalid_request` for one that the settings name: it would take sandboxes again.
 */
export async function forgetEngine(
  ledger: Pick<SandboxLedger, "list" | "forget">,
  named: readonly string[],
  engine: string,
): Promise<Forgotten> {
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
