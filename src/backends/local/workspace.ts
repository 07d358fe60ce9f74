// A workspace on this machine's disk: `files` for the agent, and beside it `staging`, on the same disk, for
// what is on its way in or out.

import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, opendir, readdir, realpath, rename, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../core/errors.ts";
import { isOver, LIFE } from "../../lib/life.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Place } from "../definition.ts";
import { codeOf, unlessMissing } from "./failures.ts";

/** Passes over a folder that does not get empty: some disks leave names out while others are removed. */
const MAX_ATTEMPTS = 3;

export interface Workspace {
  /** Hexadecimal; the same place always has the same. */
  readonly id: string;
  /** Real path of the agent's files. */
  readonly root: string;
  readonly staging: string;
}

/** Nothing that a user chose becomes part of a path. */
export function workspaceId({ owner, name }: Place): string {
  return createHash("sha256")
    .update(JSON.stringify([owner.tenant, owner.user, name]))
    .digest("hex")
    .slice(0, 32);
}

/** Makes the folders, for this process's user alone, and clears away what a process that died left in staging. */
export async function openWorkspace(dataDir: string, place: Place): Promise<Workspace> {
  const id = workspaceId(place);
  const folder = join(dataDir, "workspaces", id);
  try {
    for (const name of ["files", "staging"])
      await mkdir(join(folder, name), { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
    const home = await realpath(folder);
    const workspace = { id, root: join(home, "files"), staging: join(home, "staging") };
    for (const name of await readdir(workspace.staging))
      if (isOver(name.split(".")[0] ?? ""))
        await erase(join(workspace.staging, name), workspace).catch(() => {});
    return workspace;
  } catch (error) {
    throw new AppError(
      "backend_failed",
      `The workspace cannot be made in the server's DATA_DIR (${codeOf(error) ?? "unknown error"}).`,
      { cause: error },
    );
  }
}

/** The folders again, should a command have removed them. */
export async function ensureFolders({ root, staging }: Workspace): Promise<void> {
  for (const folder of [root, staging]) await mkdir(folder, { recursive: true, mode: 0o700 });
}

/** A name in staging that no one else has. */
export const stagingPath = ({ staging }: Workspace) => join(staging, `${LIFE}.${randomId()}`);

/**
 * Removes what lies in staging, whatever it is. Folders in it are moved up first, so that no depth is too
 * deep and every path stays short. What a running process keeps filling is left for the next start.
 */
export async function erase(path: string, workspace: Workspace, signal?: AbortSignal): Promise<void> {
  const pending = [path];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const stats = await lstat(next).catch(unlessMissing);
    if (stats?.isDirectory()) pending.push(...(await eraseFolder(next, workspace, signal)));
    else await unlink(next).catch(unlessMissing);
  }
}

/** Returns where the folders are now that were in it. */
async function eraseFolder(folder: string, workspace: Workspace, signal?: AbortSignal): Promise<string[]> {
  const moved: string[] = [];
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    await chmod(folder, 0o700);
    // Names as bytes: they need not be text.
    for await (const entry of await opendir(folder, { encoding: "latin1" })) {
      signal?.throwIfAborted();
      const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(entry.name, "latin1")]);
      if (entry.isDirectory()) moved.push(await moveToStaging(path, workspace));
      else await unlink(path).catch(unlessMissing);
    }
    const code = await rmdir(folder).then(() => undefined, codeOf);
    if (code !== "ENOTEMPTY") break;
  }
  return moved;
}

async function moveToStaging(folder: Buffer, workspace: Workspace): Promise<string> {
  const place = stagingPath(workspace);
  // Moving a folder changes its `..`, which its own mode must allow.
  await chmod(folder, 0o700);
  await rename(folder, place);
  return place;
}
