// Replaces a data folder with a backup. The slow steps happen next to the data: copying, checking and syncing to disk.
// Then a journal is written in a single step, and from then on the new data is in effect. The next process that opens
// the folder completes the remaining renames, which can be repeated safely. If a restore is killed, the folder has
// either the old or the new data.

import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../agent/core/errors.ts";
import type { Restoration } from "../../engine/runs/restored-calls.ts";
import { holdFile, isInUse } from "../../engine/stores/sqlite/copies.ts";
import { docsPage } from "../../lib/docs.ts";
import { copyTree, flush, flushTree, verifyBackup } from "./backup.ts";

/** The folder that exists inside the data folder while a restore is in progress. */
const WORK = "restore";
/** The file that a restore leaves in the data folder. Contains a `Restoration`. */
const RESTORATION = "restoration.json";
/**
 * The files and folders to replace. Database journals come first, because a new database must never be combined with an
 * old journal.
 */
const NAMES = [
  ...["skein.db", "usage.db", "keys.db"].flatMap((name) => [`${name}-wal`, `${name}-shm`, `${name}-journal`]),
  ...["skein.db", "usage.db", "keys.db", "workspaces", "volumes", "deployment", RESTORATION],
];

export interface RestoreResult {
  /** The folder with the old data. */
  readonly before: string;
  readonly files: number;
}

/**
 * Restores `backup`. `onStep` is called before each step that changes the disk. Throws `invalid_request` for a damaged
 * backup and `unavailable` for a folder in use, in both cases without changing anything.
 */
export async function restoreData(
  backup: string,
  dataDir: string,
  onStep: (step: string) => void = () => {},
): Promise<RestoreResult> {
  await verifyBackup(backup);
  const work = join(dataDir, WORK);
  await mkdir(work, { recursive: true, mode: 0o700 });
  const lock = holdFile(join(work, "lock.db"));
  try {
    await finish(dataDir, onStep);
    await mkdir(work, { recursive: true, mode: 0o700 });
    // A running server has locked the database.
    if (isInUse(join(dataDir, "skein.db")))
      throw new AppError("unavailable", `\`${dataDir}\` is in use. Stop the server first.`);
    const [fresh, journal] = [join(work, "new"), join(work, "journal")];
    onStep("copy");
    await rm(fresh, { recursive: true, force: true });
    await copyTree(backup, fresh);
    const { files, at: backup_at } = await verifyBackup(fresh);
    const restoration: Restoration = { backup_at, restored_at: new Date().toISOString() };
    await writeFile(join(fresh, RESTORATION), JSON.stringify(restoration), { mode: 0o600 });
    onStep("flush");
    await flushTree(fresh);
    const before = join(dataDir, `before-restore-${new Date().toISOString().replaceAll(":", "-")}`);
    onStep("write the journal");
    await writeFile(`${journal}.part`, JSON.stringify({ before, names: await readdir(fresh) }), {
      mode: 0o600,
    });
    await flush(`${journal}.part`);
    onStep("commit");
    await rename(`${journal}.part`, journal);
    await flush(work);
    await finish(dataDir, onStep);
    return { before, files: files.length };
  } finally {
    lock.close();
    if (!existsSync(join(work, "journal"))) await rm(work, { recursive: true, force: true });
  }
}

/** Call this before opening anything in the folder. Throws `unavailable` while another process restores it. */
export async function finishRestore(dataDir: string): Promise<void> {
  const work = join(dataDir, WORK);
  if (!existsSync(work)) return;
  const lock = holdFile(join(work, "lock.db"));
  try {
    await finish(dataDir, () => {});
  } finally {
    lock.close();
    await rm(work, { recursive: true, force: true });
  }
}

/** Completes the journal. A repeated rename finds that its source no longer exists. */
async function finish(dataDir: string, onStep: (step: string) => void): Promise<void> {
  const work = join(dataDir, WORK);
  const text = await readFile(join(work, "journal"), "utf8").catch(() => undefined);
  if (text === undefined) return;
  // Only `restoreData` writes this file.
  const { before, names } = JSON.parse(text) as { before: string; names: string[] };
  await mkdir(before, { recursive: true, mode: 0o700 });
  for (const name of NAMES) {
    const [now, fresh, old] = [join(dataDir, name), join(work, "new", name), join(before, name)];
    onStep(`put away ${name}`);
    // Once the new file has left its folder, the file with this name is the new one.
    const isOld = names.includes(name) ? existsSync(fresh) : !existsSync(old);
    if (isOld && existsSync(now)) await rename(now, old);
    onStep(`put ${name} in its place`);
    if (existsSync(fresh)) await rename(fresh, now);
  }
  await flush(before);
  await flush(dataDir);
  onStep("end");
  await rm(join(work, "journal"));
  await flush(work);
}

/** Returns the last restore of the folder, which must be finished. */
export async function restorationOf(dataDir: string): Promise<Restoration | undefined> {
  const text = await readFile(join(dataDir, RESTORATION), "utf8").catch(() => undefined);
  // Only `restoreData` writes this file.
  return text === undefined ? undefined : (JSON.parse(text) as Restoration);
}

/** Throws `invalid_request` for a store other than SQLite. */
export function requireFiles(store: string): void {
  if (store === "sqlite") return;
  throw new AppError(
    "invalid_request",
    `Skein makes backups only with STORE=sqlite; STORE is ${store}. See ${docsPage("guides/backups.md")}.`,
  );
}
