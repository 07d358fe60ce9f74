// Moves the files of unused sandboxes to other engines. Each move copies the files, compares them and records the new
// engine, and only then deletes the originals. A draining engine is emptied this way, one sandbox at a time.
//
// The ledger names both engines from before the first byte is copied until the last original is deleted. A copy that a
// dead process left behind is therefore found and deleted.

import { createHash } from "node:crypto";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AppError } from "../../../agent/core/errors.ts";
import type { Logger } from "../../../lib/logger.ts";
import { randomId } from "../../../lib/random-id.ts";
import type { SandboxRecord } from "../../sandbox-records.ts";
import { deleteCopy, deleteFiles, holding } from "../deleting.ts";
import type { Engines } from "../engines.ts";
import type { Host } from "../host.ts";
import { ERRAND, labelsOf, MOVE } from "../identity.ts";

/** The image of containers that are never started. The engine reads and writes files through these containers. */
const IMAGE = "skein-courier:1";
const FOLDER = "/workspace";
/** The assumed size of a workspace whose size is not in the ledger. This is the default of `disk`. */
const USUAL_BYTES = 1024 ** 3;
/**
 * Moves a sandbox to the engine `to`. Returns false and does nothing if the sandbox was used in the meantime or has
 * a leftover copy that must be deleted first. On failure, throws the reason and leaves the files on the first
 * engine.
 */
export async function moveSandbox(
  { from, to, seen }: { from: Host; to: Host; seen: SandboxRecord },
  signal: AbortSignal,
): Promise<boolean> {
  const { ledger, logger } = from;
  const before = seen.state === "removed" ? "removed" : "stopped";
  const begun = seen.copy === undefined ? await ledger.begin(seen, { copy: to.name }) : undefined;
  if (!begun) return false;
  await using hold = holding(ledger, begun, signal);
  try {
    await from.engine.stop(seen.id, hold.signal);
    await copyFiles(from, to, seen, hold.signal);
    await hold.extend({ engine: to.name, copy: from.name });
  } catch (error) {
    const isRemoved = await deleteFiles(to, seen.id).then(
      () => true,
      () => false,
    );
    await from.disk.release(seen.id).catch(() => {});
    await ledger.settle(hold.record, before, isRemoved ? { copy: null } : {});
    throw error;
  }
  const deleted = await deleteFiles(from, seen.id).then(
    () => ({ copy: null }),
    (err: unknown) => {
      logger.warn(
        { sandbox: seen.id, engine: from.name, err },
        "could not delete the files of a moved sandbox yet",
      );
      return {};
    },
  );
  await to.disk.release(seen.id).catch(() => {});
  await ledger.settle(hold.record, "removed", deleted);
  logger.info({ sandbox: seen.id, from: from.name, to: to.name }, "moved a sandbox to another engine");
  return true;
}

async function copyFiles(from: Host, to: Host, seen: SandboxRecord, signal: AbortSignal): Promise<void> {
  const labels = labelsOf(from.deployment, seen);
  const bytes = seen.disk ?? USUAL_BYTES;
  // Removes files that an earlier attempt left behind.
  await deleteFiles(to, seen.id);
  await using source = await courier(from, seen, { labels, bytes: seen.disk ?? 0 }, signal);
  await using target = await courier(to, seen, { labels, bytes }, signal);
  await transfer({ from, source: source.id, to, target: target.id, most: 2 * bytes }, signal);
  const [theirs, ours] = await Promise.all([
    digestOf(from, source.id, signal),
    digestOf(to, target.id, signal),
  ]);
  if (theirs !== ours)
    throw new AppError("backend_failed", "The copy of a workspace differs from the workspace.");
}

interface Transfer {
  readonly from: Host;
  readonly source: string;
  readonly to: Host;
  readonly target: string;
  /**
   * The maximum number of bytes. A limit is needed because a tar stores holes in files as zeros and not every
   * disk enforces a size.
   */
  readonly most: number;
}

async function transfer({ from, source, to, target, most }: Transfer, signal: AbortSignal): Promise<void> {
  const broken = new AbortController();
  const tar = await from.engine.readFolder(source, FOLDER, signal);
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length;
      done(bytes > most ? tooLarge(most) : null, chunk);
    },
  });
  const piped = pipeline(tar, counted).catch((error: unknown) => broken.abort(error));
  try {
    await to.engine.unpack(target, counted, AbortSignal.any([signal, broken.signal]));
  } finally {
    tar.destroy();
    await piped;
  }
}

const tooLarge = (most: number) =>
  new AppError("backend_failed", `The workspace is larger than ${most} bytes, including holes in its files.`);

/** Creates a container with the sandbox's files. The container never runs. */
async function courier(
  { engine, disk }: Host,
  { id }: SandboxRecord,
  { labels, bytes }: { labels: Record<string, string>; bytes: number },
  signal: AbortSignal,
) {
  await engine.ensureEmptyImage(IMAGE, signal);
  await disk.prepare(id, bytes, labels, signal);
  const spec = {
    Image: IMAGE,
    Cmd: ["none"],
    Labels: { ...labels, [ERRAND]: MOVE },
    HostConfig: {
      Mounts: [{ Type: "volume" as const, Source: id, Target: FOLDER }],
      NetworkMode: "none",
      CapDrop: ["ALL"],
    },
  };
  const container = await engine.create(`${id}-${randomId()}`, spec, signal);
  return { id: container, [Symbol.asyncDispose]: () => engine.remove(container) };
}

/** Hashes the names, owners, modes and contents of all entries. Excludes times, because engines round them. */
async function digestOf({ engine }: Host, container: string, signal: AbortSignal): Promise<string> {
  const { extract } = await import("tar-stream");
  const entries = extract();
  const hash = createHash("sha256");
  entries.on("entry", ({ name, type, mode, uid, gid, size, linkname }, content, next) => {
    hash.update(`${JSON.stringify([name, type, mode, uid, gid, size, linkname])}\n`);
    content.on("data", (bytes: Buffer) => hash.update(bytes));
    content.on("end", next);
    content.resume();
  });
  await pipeline(await engine.readFolder(container, FOLDER, signal), entries, { signal });
  return hash.digest("hex");
}

/** The number of milliseconds without use after which a running sandbox may be moved. */
const IDLE_MS = 60_000;
const BATCH_SIZE = 100;
/** How long to wait before a failed move is tried again, in milliseconds. */
const RETRY_MS = 5 * 60_000;

/**
 * Returns a function that moves all movable sandboxes away from these engines. Skips sandboxes that are in use or
 * that recently failed to move.
 */
export function drainer(engines: Engines, logger: Logger) {
  const failed = new Map<string, number>();

  const move = async (from: Host, seen: SandboxRecord, signal: AbortSignal): Promise<void> => {
    try {
      const to = await engines.place();
      if (!to) throw new AppError("unavailable", "No other Docker engine accepts sandboxes.");
      if (seen.copy !== undefined) await deleteCopy(await engines.host(seen.copy), seen, signal);
      else await moveSandbox({ from, to, seen }, signal);
    } catch (err) {
      if (signal.aborted) return;
      logger.warn({ sandbox: seen.id, engine: from.name, err }, "could not move a sandbox to another engine");
      failed.set(seen.id, performance.now());
    }
  };

  return async (hosts: readonly Host[], signal: AbortSignal): Promise<void> => {
    for (const [id, at] of failed) if (performance.now() - at > RETRY_MS) failed.delete(id);
    for (const from of hosts)
      for (const seen of await unusedOn(from))
        if (!signal.aborted && !failed.has(seen.id)) await move(from, seen, signal);
  };
}

async function unusedOn({ ledger, name }: Host): Promise<SandboxRecord[]> {
  const idle = await ledger.idle(IDLE_MS, BATCH_SIZE, { engine: name });
  const others = await ledger.list();
  const unused = others.filter(
    ({ engine, state }) => engine === name && (state === "stopped" || state === "removed"),
  );
  return [...unused, ...idle].slice(0, BATCH_SIZE);
}
