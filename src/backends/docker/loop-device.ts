// Loop devices: files that the kernel presents as disks. Their numbers are handed out anew at will, so what belongs
// to a file is always asked for by the file.

import { constants } from "node:fs";
import { open, readlink, rename, rm, symlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../core/errors.ts";
import { runCommand } from "./host-command.ts";

/** How long a device that is given back may still be held by what had it mounted. */
const LET_GO_MS = 5000;
const LOOK_AGAIN_MS = 50;

interface Device {
  readonly name: string;
  /** It is given back already, and goes when it is unmounted. */
  readonly isGoing: boolean;
}

/** The one device of a file. Waits for one that is going. Throws `backend_failed` when there are two. */
export async function deviceOf(file: string, signal: AbortSignal): Promise<string | undefined> {
  for (const until = performance.now() + LET_GO_MS; ; ) {
    const devices = await devicesOf(file, signal);
    if (devices.length > 1)
      throw new AppError(
        "backend_failed",
        "The workspace's disk is attached more than once on the server. The operator must detach it.",
        { cause: new Error(`${file} is attached to ${devices.map(({ name }) => name).join(", ")}`) },
      );
    if (!devices[0]?.isGoing) return devices[0]?.name;
    if (performance.now() > until)
      throw new AppError("backend_failed", "The workspace's disk is still in use on the server. Try again.");
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
  }
}

/** Not safe beside itself: the file may end up on two devices. */
export async function attachDevice(file: string, signal: AbortSignal): Promise<string> {
  const attach = (...more: string[]) =>
    runCommand("losetup", ["--find", "--show", "--nooverlap", ...more, file], { signal });
  // Past the host's page cache, so that nothing is kept twice; not every file system allows it.
  return (await attach("--direct-io=on").catch(() => attach())).trim();
}

/** Those that are mounted go when they are unmounted. */
export async function detachDevices(file: string, signal: AbortSignal): Promise<void> {
  for (const { name } of await devicesOf(file, signal))
    await runCommand("losetup", ["--detach", name], { signal });
}

/** On the whole machine, whatever this process sees of its mounts. */
export async function isMounted(device: string): Promise<boolean> {
  try {
    const file = await open(device, constants.O_RDONLY | constants.O_EXCL);
    await file.close();
    return false;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EBUSY") return true;
    throw error;
  }
}

/** In one step, whatever the link led to before. */
export async function pointTo(device: string, link: string): Promise<void> {
  if ((await readlink(link).catch(() => undefined)) === device) return;
  const draft = `${link}.new`;
  await rm(draft, { force: true });
  await symlink(device, draft);
  await rename(draft, link);
}

async function devicesOf(file: string, signal: AbortSignal): Promise<Device[]> {
  const columns = ["--noheadings", "--raw", "--output", "NAME,AUTOCLEAR"];
  const printed = await runCommand("losetup", ["--associated", file, ...columns], { signal });
  const lines = printed.split("\n").filter((line) => line !== "");
  return lines.map((line) => ({ name: line.split(" ")[0] ?? "", isGoing: line.endsWith(" 1") }));
}
