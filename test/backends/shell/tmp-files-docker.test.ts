// @ts-nocheck
import Docker from "dockerode";
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Shell } from "../../../src/backends/shell/shell.ts";
import { PRELUDE } from "../../../src/backends/shell/prelude.ts";
import { shellFiles, clearStaging } from "../../../src/backends/shell/files.ts";
import { editing } from "../../../src/backends/edit.ts";
import { searching } from "../../../src/backends/search.ts";
import { LaneLost } from "../../../src/backends/shell/runner.ts";
import { frameChannel } from "../../../src/backends/docker/exec-channel.ts";
import { filesContract, execute, readAll, refuses } from "../../contracts/backend.ts";
const docker = new Docker({ socketPath: "/tmp/eng/docker.sock" });
const { signal } = new AbortController();
const cli = (...a) => execFileSync("docker", a, { env: { ...process.env, DOCKER_HOST: "unix:///tmp/eng/docker.sock" }, encoding: "utf8" });
for (const image of (process.env.IMAGES ?? "lanes-busybox,perl-img:debian").split(",")) {
  describe(image, () => {
    let shell, c, backend;
    const name = `files-${image.replace(/\W/g, "-")}`;
    beforeAll(async () => {
      await docker.getContainer(name).remove({ force: true, v: true }).catch(() => {});
      c = await docker.createContainer({ name, Image: image, Cmd: ["sleep", "3600"], User: "65534", WorkingDir: "/",
        HostConfig: { Init: true, ReadonlyRootfs: true, Tmpfs: { "/workspace": "rw,exec,size=64m,uid=1000,gid=1000", "/tmp": "rw,size=8m,mode=1777" }, NetworkMode: "none", Memory: 256 << 20, MemorySwap: 256 << 20, PidsLimit: 128, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"], Ulimits: [{ Name: "fsize", Soft: 40_000_000, Hard: 40_000_000 }] } });
      await c.start();
      shell = new Shell(async (events, abortSignal) => {
        const e = await c.exec({ Cmd: ["/bin/sh"], User: "1000:1000", WorkingDir: "/workspace", AttachStdin: true, AttachStdout: true, AttachStderr: true, Env: ["HOME=/workspace", "PS1=", "LANG=C.UTF-8"], abortSignal });
        return frameChannel(await e.start({ hijack: true, stdin: true }), events);
      }, { workdir: "/workspace", prelude: PRELUDE, onSilence() {} });
      const runOnce = (f, s) => shell.runOnce(f, s);
      const run = (f, s) => runOnce(f, s).catch((e) => { if (e instanceof LaneLost) return runOnce(f, s); throw e; });
      const files = shellFiles({ run, runOnce }, "/workspace");
      backend = { type: "shell", exec: (l, o) => shell.exec(l, o), ...files, ...editing(files), ...searching(files) };
    });
    afterAll(async () => { shell.close(new Error("end")); await c.remove({ force: true, v: true }); });
    filesContract(async () => ({ get backend() { return backend; }, close: async () => {} }));
    const asRoot = (cmd) => cli("exec", "-u", "0", name, "sh", "-c", cmd);
    test("root's files", async () => {
      const sh = async (l) => (await execute(backend, l)).output;
      await backend.write("mine/f", Buffer.from("x"), signal);
      asRoot("cd /workspace && mkdir rootdir && echo secret > rootdir/f && head -c 2000000 /dev/zero > rootbig && echo x > rootfile && chmod 600 rootfile && mkdir -p rootdir/sub");
      expect(String(await readAll(backend, "rootdir/f"))).toBe("secret\n");
      expect((await readAll(backend, "rootbig")).length).toBe(2_000_000);
      expect(await sh("ls -A .skein/staging")).toBe("");
      await refuses(() => readAll(backend, "rootfile"), "backend_refused", "permission denied");
      await refuses(() => backend.write("rootdir/g", Buffer.from("x"), signal), "backend_refused", "permission denied");
      await refuses(() => backend.remove("rootdir/f", signal), "backend_refused", "permission denied");
      await refuses(() => backend.remove("rootdir", signal), "backend_refused", "permission denied");
      await backend.write("rootfile", Buffer.from("mine now"), signal);
      await backend.remove("rootbig", signal);
      asRoot("rm -rf /workspace/rootdir");
      for (const p of ["/etc/x", "/proc/1/environ"]) await refuses(() => backend.stat(p, signal), "backend_refused", "outside");
      await sh("ln -s /etc etc; ln -s /proc/1/environ env; ln -s /dev/zero zero");
      for (const p of ["etc/passwd", "env", "zero"]) await refuses(() => readAll(backend, p), "backend_refused", "link");
      await sh("rm etc env zero");
    });
    test("file too large, disk full", async () => {
      await refuses(() => backend.write("huge", Buffer.alloc(45_000_000, 1), signal), "backend_failed", "larger than a file may be");
      await backend.write("a", Buffer.alloc(39_000_000, 1), signal);
      await refuses(() => backend.write("b", Buffer.alloc(39_000_000, 1), signal), "backend_failed", "disk is full");
      async function* s() { for (let i = 0; i < 40; i++) yield Buffer.alloc(1_000_000, 2); }
      await refuses(() => backend.write("b", s(), signal), "backend_failed", "disk is full");
      expect((await execute(backend, "ls -A .skein/staging; df /workspace | tail -1")).output).toMatch(/^\S+ +\d+ +3\d\d\d\d /);
      await backend.write("b", Buffer.alloc(20_000_000, 1), signal);
      for (let i = 0; i < 6; i++) await backend.write("c" + i, Buffer.alloc(1_000_000, 1), signal).catch(() => {});
      await execute(backend, "head -c 30000000 /dev/zero > filler");
      await refuses(() => backend.write("t", Buffer.from("text ".repeat(2000)), signal), "backend_failed", "disk is full");
      await refuses(() => backend.write("t", Buffer.alloc(9000, 0), signal), "backend_failed", "disk is full");
      await refuses(() => backend.edit("kinds/file", "x", "y".repeat(50_000), signal), "backend_failed", "disk is full");
      expect((await execute(backend, "ls -A .skein/staging; ls t")).exitCode).not.toBe(0);
      await execute(backend, "rm a b c* filler");
    });
    test("latency", async () => {
      const time = async (label, n, f) => {
        for (let i = 0; i < 20; i++) await f(i);
        const t = [];
        for (let i = 0; i < n; i++) { const a = performance.now(); await f(i); t.push(performance.now() - a); }
        t.sort((a, b) => a - b);
        console.log(image, label, "p50", t[n >> 1].toFixed(2), "p99", t[Math.floor(n * 0.99)].toFixed(2));
      };
      await backend.write("bench/f", Buffer.alloc(4096, 97), signal);
      for (let i = 0; i < 20; i++) await backend.write("bench/d/f" + i, Buffer.alloc(100, 97), signal);
      await time("empty", 300, () => shell.runOnce({ script: ":" }, signal));
      await time("read 4K", 300, () => readAll(backend, "bench/f"));
      await time("write 4K", 300, () => backend.write("bench/f", Buffer.alloc(4096, 97), signal));
      await time("write 4K binary", 300, () => backend.write("bench/b", Buffer.alloc(4096, 0), signal));
      await time("stat", 300, () => backend.stat("bench/f", signal));
      await time("list 20", 300, () => backend.list("bench/d", signal));
      await time("edit", 100, () => backend.edit("bench/f", "a", "a", signal));
      await time("glob", 100, () => backend.glob("**", "bench", signal));
      await time("remove file", 100, async () => { await backend.write("bench/x", Buffer.from("x"), signal); await backend.remove("bench/x", signal); });
      await time("write 1M", 20, () => backend.write("bench/m", Buffer.alloc(1048576, 0), signal));
      await time("read 1M", 20, () => readAll(backend, "bench/m"));
      await backend.write("bench/big", Buffer.alloc(30_000_000, 1), signal);
      await time("read 30M", 3, () => readAll(backend, "bench/big"));
      await time("write 30M", 3, () => backend.write("bench/big", Buffer.alloc(30_000_000, 1), signal));
      await execute(backend, "mkdir -p src; cd src; for i in $(seq 2000); do head -c 3000 /dev/urandom | od -x > f$i; done");
      await time("grep 2000 files", 5, () => backend.grep("nothing here", "src", undefined, signal));
      let t = performance.now();
      await Promise.all(Array.from({ length: 800 }, () => {}).map(async (_, i) => { }));
      const eight = async (f) => { let left = 800; const s = performance.now(); await Promise.all(Array.from({ length: 8 }, async () => { while (left-- > 0) await f(); })); return Math.round(800 / (performance.now() - s) * 1000); };
      console.log(image, "8 parallel read/s", await eight(() => readAll(backend, "bench/f")), "write/s", await eight(() => backend.write("bench/f", Buffer.alloc(4096, 97), signal)));
    }, 120000);
  });
}
