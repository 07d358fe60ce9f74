// `skein backup` and `skein restore`.

import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { AppError } from "../../agent/core/errors.ts";
import { createClient } from "../../client/client.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import { copyTree, flushTree, verifyBackup } from "../app/backup.ts";
import { requireFiles, restoreData } from "../app/restore.ts";
import { t } from "./texts.ts";

interface Server {
  readonly url: string;
  readonly key: string | undefined;
}

/**
 * Requests a backup from the running server and moves it to `dir`. Throws `already_exists` if `dir` exists, or if
 * another backup to it is in progress.
 */
export async function backUpTo(dir: string, { url, key }: Server): Promise<string> {
  const target = resolve(dir);
  if (existsSync(target)) throw new AppError("already_exists", t().backup.exists(dir));
  const part = `${target}.part`;
  await claim(part, dir);
  try {
    const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const { path, files, bytes, workspaces_left_out } = await createClient({
      baseUrl: url,
      headers,
    }).admin.backUp();
    if (!existsSync(path)) return t().backup.onServer(path, files, bytes) + leftOut(workspaces_left_out);
    const copy = join(part, "copy");
    await copyTree(path, copy);
    await verifyBackup(copy);
    await flushTree(copy);
    await rename(copy, target);
    await rm(path, { recursive: true, force: true });
    return t().backup.done(files, bytes, dir) + leftOut(workspaces_left_out);
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}

const leftOut = (workspaces: number) =>
  workspaces === 0 ? "" : `\n${t().backup.withoutSandboxes(workspaces)}`;

/** Creates the folder `part`, so only one command writes the backup. A killed command leaves the folder behind. */
async function claim(part: string, dir: string): Promise<void> {
  await mkdir(dirname(part), { recursive: true });
  await mkdir(part, { mode: 0o700 }).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    throw new AppError("already_exists", t().backup.inProgress(part, dir));
  });
}

/** Replaces the data folder with a backup. The server must not be running. */
export async function restoreFrom(dir: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { store, data_dir } = await loadServerConfig(env);
  requireFiles(store);
  const { files, before } = await restoreData(resolve(dir), resolve(data_dir));
  return t().backup.restored(files, data_dir, before);
}
