import { spawnSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readAll, refuses } from "../../support/backend.ts";
import { needing } from "../../support/needing.ts";
import { backendOn, describeFiles, from, newFolder, USER } from "../../support/shell-files.ts";

const { signal } = new AbortController();
const mayMount = spawnSync("unshare", ["--mount", "true"]).status === 0;

describeFiles((opened) => {
  test("says who may not", async () => {
    const { backend, sh } = await opened();
    await sh(
      "mkdir shut fixed; echo x > shut/f; echo x > fixed/f; echo x > secret; mkdir fixed/d; echo x > fixed/d/f",
    );
    await sh("chmod 000 secret shut; chmod 555 fixed");
    const denied = async (attempt: () => Promise<unknown>) =>
      refuses(attempt, "backend_refused", "permission denied");
    await denied(() => readAll(backend, "secret"));
    await denied(() => readAll(backend, "shut/f"));
    await denied(() => backend.stat("shut/f", signal));
    await denied(() => backend.list("shut", signal));
    await denied(() => backend.write("shut/f", Buffer.from("y"), signal));
    await denied(() => backend.write("fixed/f", Buffer.from("y"), signal));
    await denied(() => backend.write("fixed/new/f", Buffer.from("y"), signal));
    await denied(() => backend.write("fixed/f", Buffer.alloc(2_000_000), signal));
    await denied(() => backend.remove("fixed/f", signal));
    await denied(() => backend.remove("fixed/d", signal));
    expect((await backend.grep("x", ".", undefined, signal)).matches.map(({ file }) => file)).toEqual([
      `${backend.workdir}/fixed/d/f`,
      `${backend.workdir}/fixed/f`,
    ]);
    await backend.write("secret", Buffer.from("mine"), signal);
    await backend.remove("shut", signal);
    await sh("chmod 755 fixed");
  });

  test("says that the workspace is gone", async () => {
    const { runner } = await opened();
    const backend = backendOn(runner, "/nowhere/at/all");
    for (const attempt of [
      () => backend.stat("f", signal),
      () => backend.write("f", Buffer.from("x"), signal),
      () => backend.write("f", Buffer.alloc(2_000_000), signal),
      () => backend.remove("f", signal),
      () => backend.grep("x", ".", undefined, signal),
    ])
      await refuses(attempt, "backend_failed", "workspace");
  });

  needing(mayMount, "the right to mount a disk").describe("a small disk", () => {
    const mounted = async () => {
      const folder = await newFolder();
      const disk = join(folder, "small");
      await mkdir(disk);
      const options = `size=1m,nr_inodes=40,uid=${USER?.uid ?? 0},gid=${USER?.gid ?? 0}`;
      expect(spawnSync("mount", ["-t", "tmpfs", "-o", options, "none", disk]).status).toBe(0);
      return disk;
    };

    test("that is full is said to be, and nothing is half written", async () => {
      const disk = await mounted();
      const { backend, sh, staged } = await opened(disk);
      await backend.write("f", Buffer.from("before"), signal);
      const full = (data: Uint8Array | AsyncIterable<Uint8Array>, path = "f") =>
        refuses(() => backend.write(path, data, signal), "backend_failed", "disk is full");
      await full(Buffer.alloc(2_000_000));
      await full(from(Buffer.alloc(2_000_000)));
      await full(Buffer.alloc(1_048_576));
      expect(await staged()).toBe("");
      await sh(
        "mkdir d; echo needle > d/f; head -c 2000000 /dev/zero > filler 2>/dev/null; i=0; while : > d/$i; do i=$((i+1)); done",
      );
      await full(Buffer.from("text"));
      await full(Buffer.from([0, 1]));
      await full(Buffer.alloc(5000, "x"), "new/folder/f");
      await sh("rm d/0");
      await full(Buffer.alloc(90_000, "x"));
      await full(Buffer.alloc(90_000, 0));
      expect(await staged()).toBe("");
      expect(String(await readAll(backend, "f"))).toBe("before");
      expect((await backend.grep("needle", ".", undefined, signal)).matches).toHaveLength(1);
      expect((await readAll(backend, "filler")).length).toBeGreaterThan(900_000);
      await sh("rm -rf .skein");
      await backend.remove("d", signal);
      await backend.remove("filler", signal);
      await backend.write("f", Buffer.from("after"), signal);
    });

    test("that is read-only can be read and searched, and is said to be", async () => {
      const disk = await mounted();
      const { backend, sh } = await opened(disk);
      await sh("head -c 900000 /dev/zero > f; mkdir d; echo needle > d/f");
      spawnSync("mount", ["-o", "remount,ro", disk]);
      expect((await readAll(backend, "f")).length).toBe(900_000);
      expect((await backend.grep("needle", ".", undefined, signal)).matches).toHaveLength(1);
      for (const path of ["f", "d/f", "d"])
        await refuses(() => backend.remove(path, signal), "backend_refused", "read-only");
      for (const path of ["new", "new/f"])
        await refuses(() => backend.write(path, Buffer.from("x"), signal), "backend_refused", "read-only");
    });
  });
});
