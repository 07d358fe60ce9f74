import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Disk } from "../../../src/sandbox/docker/disk.ts";
import { execute, refuses } from "../../support/backend.ts";
import { describeWithEngine, describeWithOwnEngine } from "../../support/engine.ts";
import {
  dataDir,
  devicesOf,
  host,
  imageOf,
  inside,
  labels,
  linkOf,
  newId,
  opened,
  warnings,
} from "./disks.ts";
import { ada, configOf, newServer, newWorld } from "./opened.ts";

const MIB = 1024 ** 2;
const { signal } = new AbortController();

describeWithEngine("a workspace's disk, on any engine", (found) => {
  test("exists once prepared, keeps its files, and is deleted once removed", async () => {
    const { disk, workspace, run } = await opened(found);
    const id = await workspace(32 * MIB);
    await run(id, "echo kept > file");
    await disk.release(id);
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(await run(id, "cat file")).toBe("kept\n");
    expect(await disk.list()).toContainEqual({ id, labels });
    await disk.remove(id);
    expect(await disk.list()).not.toContainEqual({ id, labels });
    await disk.remove(id);
  });

  test("is not removed while a container exists", async () => {
    const { disk, workspace, container, run } = await opened(found);
    const id = await workspace(32 * MIB);
    await run(id, "echo kept > file");
    await container(id, "true");
    await expect(disk.remove(id)).rejects.toMatchObject({ status: 409 });
    expect(await run(id, "cat file")).toBe("kept\n");
  });

  test("works without a hard limit, and the log warns that its size is only checked", async () => {
    const file = join(dataDir, "no-folder");
    await writeFile(file, "");
    const { disk, workspace, run } = await opened(found, { dataDir: file });
    expect(disk.kind).toBe("watch");
    expect(warnings).toContainEqual({ why: expect.any(String) });
    const id = await workspace(16 * MIB);
    expect(await disk.isCapped(id, signal)).toBe(false);
    await run(id, "true");
  });
});

describeWithOwnEngine("a workspace's disk, if the server is root on the engine's machine", (found) => {
  test("takes no more of the host than its contents, and can be emptied when it is full", async () => {
    const { disk, workspace, run } = await opened(found);
    expect(disk.kind).toBe("loop");
    const id = await workspace(64 * MIB);
    expect(await disk.isCapped(id, signal)).toBe(true);
    const used = async () => (await stat(imageOf(id))).blocks * 512;
    expect(await used()).toBeLessThan(2 * MIB);
    const output = await run(id, "dd if=/dev/zero of=big bs=1M count=100; ls -l | wc -l; stat -c %s big");
    expect(output).toContain("No space left on device");
    const written = Number(output.trim().split("\n").at(-1));
    expect(written).toBeGreaterThan(50 * MIB);
    expect(written).toBeLessThan(64 * MIB);
    expect(await run(id, "rm big; sync; echo again > file; cat file")).toBe("again\n");
    await expect.poll(used).toBeLessThan(8 * MIB);
  });

  test("is empty at first and belongs to the sandbox's user", async () => {
    const { workspace, run } = await opened(found);
    const id = await workspace(16 * MIB);
    expect(await run(id, "ls -A; stat -c %u:%g .; id -u")).toBe("1000:1000\n1000\n");
    expect(await run(id, "grep ' /workspace ' /proc/mounts")).toMatch(/ ext4 \S*nosuid,nodev/);
  });

  test("holds many small files", async () => {
    const { workspace } = await opened(found);
    await inside(await workspace(64 * MIB), async (folder) => {
      for (let n = 0; n < 5000; n++) await writeFile(join(folder, `${n}`), "x");
    });
  });

  test("is on one device after many prepare it at once", async () => {
    const one = await opened(found);
    const other = await opened(found);
    const id = newId();
    const prepare = ({ disk }: { disk: Disk }) => disk.prepare(id, 32 * MIB, labels, signal);
    await Promise.all([one, other, one, other, one, other, one, other].map(prepare));
    expect(await devicesOf(id)).toHaveLength(1);
    await Promise.all([one, other].map(({ disk }) => disk.release(id)));
    expect(await devicesOf(id)).toEqual([]);
    await Promise.all([one, other].map(({ disk }) => disk.remove(id)));
  });

  test("is not touched if another program has attached it too", async () => {
    const { disk, workspace } = await opened(found);
    const id = await workspace(32 * MIB);
    const { stdout } = await host("losetup", ["--find", "--show", imageOf(id)]);
    await refuses(() => disk.prepare(id, 32 * MIB, labels, signal), "backend_failed", "more than once");
    await host("losetup", ["-d", stdout.trim()]);
    await disk.prepare(id, 32 * MIB, labels, signal);
  });

  test("takes nothing of the host once released, and leaves nothing once removed", async () => {
    const { disk, engine, workspace } = await opened(found);
    const id = await workspace(32 * MIB);
    await inside(id, (folder) => writeFile(join(folder, "file"), "x"));
    await disk.release(id);
    expect(await devicesOf(id)).toEqual([]);
    expect(await linkOf(id)).toBeUndefined();
    await disk.prepare(id, 32 * MIB, labels, signal);
    await disk.remove(id);
    expect((await readdir(join(dataDir, "volumes"))).filter((name) => name.includes(id))).toEqual([]);
    expect((await host("losetup", ["-a"])).stdout).not.toContain(id);
    expect(await linkOf(id)).toBeUndefined();
    expect(await engine.inspectVolume(id)).toBeUndefined();
  });

  test("never gives another sandbox's files to a container that was started outside of Skein", async () => {
    const { disk, engine, workspace, container, run } = await opened(found);
    const mine = await workspace(32 * MIB);
    await run(mine, "echo mine > file");
    const old = await container(mine, "sh", "-c", "cat /workspace/file > /workspace/seen");
    await disk.release(mine);
    const theirs = await workspace(32 * MIB);
    await run(theirs, "echo secret > file");
    await expect(engine.start(old)).rejects.toMatchObject({ status: 500 });
    await disk.prepare(mine, 32 * MIB, labels, signal);
    await engine.start(old);
    await engine.wait(old);
    expect(await run(mine, "cat seen")).toBe("mine\n");
  });

  test("does not use a device that belongs to another file by now", async () => {
    const { disk, workspace } = await opened(found);
    const [mine, theirs] = [await workspace(32 * MIB), await workspace(32 * MIB)];
    for (const id of [mine, theirs]) await inside(id, (folder) => writeFile(join(folder, "owner"), id));
    const [own, others] = [await linkOf(mine), await linkOf(theirs)];
    if (!own || !others) throw new Error("They have no links.");
    // What a machine that comes up again may look like, should the links outlive it.
    await host("losetup", ["-d", own.to]);
    await unlink(own.link);
    await symlink(others.to, own.link);
    await disk.prepare(mine, 32 * MIB, labels, signal);
    for (const id of [mine, theirs])
      expect(await inside(id, (folder) => readFile(join(folder, "owner"), "utf8"))).toBe(id);
  });

  test("keeps working if it is released while in use, and is freed afterwards", async () => {
    const { disk, workspace } = await opened(found);
    const id = await workspace(32 * MIB);
    await inside(id, async (folder) => {
      await disk.release(id);
      await writeFile(join(folder, "file"), "x");
      expect(await devicesOf(id)).toHaveLength(1);
    });
    // The system frees it when the last one that looked at it has closed it.
    await expect.poll(() => devicesOf(id)).toEqual([]);
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(await inside(id, (folder) => readdir(folder))).toEqual(["file"]);
  });

  test("grows with its configuration, even if it was not released, and does not shrink", async () => {
    const { disk, workspace } = await opened(found);
    const id = await workspace(16 * MIB);
    const big = (folder: string) => join(folder, "big");
    await inside(id, (folder) => writeFile(join(folder, "file"), "kept"));
    await disk.prepare(id, 128 * MIB, labels, signal);
    await inside(id, (folder) => writeFile(big(folder), Buffer.alloc(100 * MIB)));
    await disk.release(id);
    await disk.prepare(id, 32 * MIB, labels, signal);
    await inside(id, async (folder) => {
      expect(await readdir(folder)).toEqual(["big", "file"]);
      expect((await stat(big(folder))).size).toBe(100 * MIB);
      await expect(writeFile(join(folder, "more"), Buffer.alloc(100 * MIB))).rejects.toThrow("ENOSPC");
    });
  });

  test("is repaired before use if it is damaged, and recovered files belong to the sandbox's user", async () => {
    const { disk, workspace } = await opened(found);
    const id = await workspace(32 * MIB);
    await inside(id, async (folder) => {
      await writeFile(join(folder, "file"), "kept");
      await mkdir(join(folder, "folder"));
      await writeFile(join(folder, "folder", "orphan"), "found");
    });
    await disk.release(id);
    await debugfs(imageOf(id), "set_super_value state 2\nunlink folder\n");
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(warnings).toContainEqual({ sandbox: id });
    await inside(id, async (folder) => {
      expect(await readFile(join(folder, "file"), "utf8")).toBe("kept");
      const lost = join(folder, "lost+found");
      const [name = ""] = await readdir(lost);
      expect(await readFile(join(lost, name, "orphan"), "utf8")).toBe("found");
      expect(await stat(lost)).toMatchObject({ uid: 1000, gid: 1000 });
    });
  });

  test("is created again if a crashed server left it unfinished", async () => {
    const { disk } = await opened(found);
    const id = newId();
    await mkdir(join(dataDir, "volumes"), { recursive: true });
    await writeFile(`${imageOf(id)}.new`, "half");
    expect(await disk.list()).toContainEqual({ id, labels: {} });
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(await inside(id, (folder) => readdir(folder))).toEqual([]);
    await disk.remove(id);
    await writeFile(`${imageOf(id)}.new`, "half");
    await disk.remove(id);
    expect(await disk.list()).not.toContainEqual({ id, labels: {} });
  });

  test("keeps its files when the volume is pruned", async () => {
    const { disk, engine, workspace } = await opened(found);
    const id = await workspace(32 * MIB);
    await inside(id, (folder) => writeFile(join(folder, "file"), "kept"));
    await engine.removeVolume(id);
    expect(await disk.list()).toContainEqual({ id, labels: {} });
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(await disk.list()).toContainEqual({ id, labels });
    expect(await inside(id, (folder) => readFile(join(folder, "file"), "utf8"))).toBe("kept");
  });

  test("is not replaced with an empty one by a server with another data folder", async () => {
    const { workspace } = await opened(found);
    const elsewhere = await mkdtemp(join(tmpdir(), "skein-disk-"));
    onTestFinished(() => rm(elsewhere, { recursive: true }));
    const { disk } = await opened(found, { dataDir: elsewhere });
    const id = await workspace(32 * MIB);
    await refuses(() => disk.prepare(id, 32 * MIB, labels, signal), "backend_failed", "data folder");
  });

  test("reports a full host, and leaves nothing unfinished", async () => {
    const full = await mkdtemp(join(tmpdir(), "skein-disk-"));
    await host("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", full]);
    onTestFinished(async () => {
      await host("umount", [full]);
      await rm(full, { recursive: true });
    });
    const { disk } = await opened(found, { dataDir: full });
    expect(disk.kind).toBe("loop");
    await writeFile(join(full, "other"), Buffer.alloc(4 * MIB)).catch(() => {});
    const prepare = () => disk.prepare(newId(), 64 * MIB, labels, signal);
    await refuses(prepare, "backend_failed", "the server's disk is full");
    expect(await disk.list()).toEqual([]);
  });

  test("can be prepared again after an aborted preparation", async () => {
    const { disk } = await opened(found);
    const id = newId();
    for (const ms of [0, 2, 4, 6, 8, 10, 12]) {
      const hasty = AbortSignal.timeout(ms);
      await disk
        .prepare(id, 32 * MIB, labels, hasty)
        .catch((error: unknown) => expect(error).toBe(hasty.reason));
    }
    await disk.prepare(id, 32 * MIB, labels, signal);
    expect(await devicesOf(id)).toHaveLength(1);
    expect(await inside(id, (folder) => readdir(folder))).toEqual([]);
    await disk.remove(id);
  });
});

async function debugfs(image: string, commands: string): Promise<void> {
  const running = host("debugfs", ["-w", "-f", "-", image]);
  running.child.stdin?.end(commands);
  await running;
}

describeWithOwnEngine("a workspace that only a watch limits", (engine) => {
  test("ends a command that writes too much, and accepts no more until there is space", async () => {
    const config = await configOf(engine, "busybox", { disk: "32m" });
    const world = await newWorld();
    // No disk of a size can be made where they are kept.
    await writeFile(join(world.dataDir, "volumes"), "in the way");
    const { pool } = newServer(engine, world);
    const backend = await pool.get(ada, config);
    const result = await execute(
      backend,
      "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=20; done; sleep 300",
    );
    expect(result).toMatchObject({ ended: "disk-limit", exitCode: null });
    await refuses(() => backend.write("more", Buffer.from("x"), signal), "backend_failed", "disk is full");
    await execute(backend, "rm f*");
    expect(await backend.write("more", Buffer.from("x"), signal)).toBe(1);
    expect((await execute(backend, "dd if=/dev/zero of=large bs=1M count=40")).exitCode).not.toBe(0);
  });
});
