// Workspaces' disks on the engine of a test file, and what the host has of them.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, onTestFinished } from "vitest";
import { openDisk } from "../../../src/sandbox/docker/disk.ts";
import { connect } from "../../../src/sandbox/docker/engine.ts";
import { linkFolders } from "../../../src/sandbox/docker/loop-disks/index.ts";
import type { Engine } from "../../support/engine.ts";

const { signal } = new AbortController();
export const host = promisify(execFile);

const deployment = `test-${randomBytes(4).toString("hex")}`;
export const labels = { "skein.deployment": deployment, "skein.test": "1" };
export const dataDir = await mkdtemp(join(tmpdir(), "skein-disk-"));
export const warnings: object[] = [];
const logger = { info() {}, warn: (details: object) => void warnings.push(details), error() {} };
export const newId = () => `skein-${randomBytes(8).toString("hex")}`;

afterAll(async () => {
  for (const folder of [dataDir, ...(await linkFolders(deployment))])
    await rm(folder, { recursive: true, force: true });
});

/** A disk whose workspaces and containers are removed at the end of the test. */
export async function opened({ docker, host, image }: Engine, options = { dataDir }) {
  const engine = connect({ host });
  const disk = await openDisk(engine, {
    ...{ folder: join(options.dataDir, "volumes"), deployment, mark: deployment, logger },
  });
  const Image = await image("busybox");
  const containers: string[] = [];
  const ids: string[] = [];
  onTestFinished(async () => {
    for (const id of containers) await engine.remove(id);
    for (const id of ids) await disk.remove(id);
  });

  const container = async (id: string, ...Cmd: string[]): Promise<string> => {
    const Mounts = [{ Type: "volume" as const, Source: id, Target: "/workspace" }];
    const spec = { Image, Cmd, User: "1000", HostConfig: { Mounts, NetworkMode: "none", Init: true } };
    const made = await engine.create(`${id}-${randomBytes(4).toString("hex")}`, spec);
    containers.push(made);
    return made;
  };
  return {
    ...{ engine, disk, container },
    /** Files of a new workspace. */
    workspace: async (bytes: number): Promise<string> => {
      const id = newId();
      ids.push(id);
      await disk.prepare(id, bytes, labels, signal);
      return id;
    },
    /** What a command in a workspace prints. Nothing of it runs any more. */
    async run(id: string, command: string): Promise<string> {
      const made = await container(id, "sh", "-c", `exec 2>&1; cd /workspace; ${command}`);
      await engine.start(made);
      await engine.wait(made);
      const logs = await docker.getContainer(made).logs({ stdout: true });
      await engine.remove(made);
      return printed(logs);
    },
  };
}

/** Works in a workspace as if it were mounted in a container, only faster. */
export async function inside<T>(id: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "skein-mounted-"));
  const { link = "" } = (await linkOf(id)) ?? {};
  await host("mount", ["-t", "ext4", link, folder]);
  try {
    return await work(folder);
  } finally {
    await host("umount", [folder]);
    await rm(folder, { recursive: true });
  }
}

/** Without the eight bytes that are before each piece. */
function printed(frames: Buffer): string {
  let text = "";
  for (let at = 0; at < frames.length; at += 8 + frames.readUInt32BE(at + 4))
    text += frames.subarray(at + 8, at + 8 + frames.readUInt32BE(at + 4)).toString();
  return text;
}

export const imageOf = (id: string, folder = dataDir) => join(folder, "volumes", `${id}.img`);
export const devicesOf = async (id: string) =>
  (await host("losetup", ["-n", "-O", "NAME", "-j", imageOf(id)])).stdout.split("\n").filter(Boolean);
export const linkOf = async (id: string) => {
  for (const folder of await linkFolders(deployment)) {
    const to = await readlink(join(folder, id)).catch(() => undefined);
    if (to) return { link: join(folder, id), to };
  }
  return undefined;
};
