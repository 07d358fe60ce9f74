import { mkdirSync, chownSync, chmodSync } from "node:fs";
import { readFile, rm, stat, writeFile, chmod } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Shell } from "../../../src/backends/shell/shell.ts";
import { frameChannel } from "../../../src/backends/docker/exec-channel.ts";
import type { Backend } from "../../../src/core/backend.ts";
import { AppError } from "../../../src/core/errors.ts";
import { commandsContract, execute } from "../../contracts/backend.ts";

const docker = new Docker({ socketPath: "/tmp/eng/docker.sock" });
for (const image of ["lanes-busybox", "perl-img:debian"]) {
  describe(image, () => {
    const ws = `/tmp/lanes/ws-${image.replace(/\W/g, "_")}`;
    let shell: Shell; let c: Docker.Container;
    beforeAll(async () => {
      mkdirSync(ws, { recursive: true }); chownSync(ws, 1000, 1000); chmodSync(ws, 0o777);
      c = await docker.createContainer({ name: `lanes-${image.replace(/\W/g, "-")}`, Image: image, Cmd: ["sleep", "3600"], User: "65534", WorkingDir: "/",
        HostConfig: { Init: true, Binds: [`${ws}:/workspace`], NetworkMode: "none", Memory: 128 << 20, MemorySwap: 128 << 20, PidsLimit: 128, CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] } });
      await c.start();
      shell = new Shell(async (events, abortSignal) => {
        const e = await c.exec({ Cmd: ["/bin/sh"], User: "1000:1000", WorkingDir: "/workspace", AttachStdin: true, AttachStdout: true, AttachStderr: true, Env: ["HOME=/workspace", "PS1="], abortSignal } as any);
        return frameChannel(await e.start({ hijack: true, stdin: true }), events);
      }, { workdir: "/workspace", prelude: "", onSilence() {} });
      const ev: any = await docker.getEvents({ filters: { container: [c.id] } });
      ev.on("data", (d: Buffer) => { for (const l of String(d).trim().split("\n")) { const e = JSON.parse(l); if (e.Action === "oom") { console.log("oom event", performance.now()); shell.noteOom(); } } });
    });
    afterAll(async () => { shell.close(new Error("end")); await c.remove({ force: true, v: true }); });
    const backend = {
      exec: (cmd: string, o: any) => shell.exec(cmd, o),
      async *read(path: string) { yield await readFile(join(ws, path)); },
      async write(path: string, data: Uint8Array) { await writeFile(join(ws, path), data); await chmod(join(ws, path), 0o666); return data.length; },
      async stat(path: string) { const { size } = await stat(join(ws, path)).catch(() => { throw new AppError("not_found", path); }); return { path, size }; },
      remove: (path: string) => rm(join(ws, path)),
    } as unknown as Backend;
    commandsContract(async () => ({ backend, close: async () => {} }));
    test("latency", async () => {
      const { signal } = new AbortController();
      const run = async (label: string, n: number, f: () => Promise<unknown>) => {
        for (let i = 0; i < 20; i++) await f();
        const t: number[] = [];
        for (let i = 0; i < n; i++) { const a = performance.now(); await f(); t.push(performance.now() - a); }
        t.sort((a, b) => a - b);
        console.log(image, label, "p50", t[n >> 1]!.toFixed(2), "p99", t[Math.floor(n * 0.99)]!.toFixed(2));
      };
      await run("empty", 300, () => shell.runOnce({ script: ":" }, signal));
      await run("true", 200, () => execute(backend, "true"));
    });
    test("oom", async () => {
      for (let i = 0; i < 5; i++) {
        const r = await execute(backend, "tail /dev/zero");
        console.log("job over", performance.now());
        expect(r).toMatchObject({ ended: "oom" });
        const r2 = await execute(backend, "tail /dev/zero; exit $?");
        expect(r2).toMatchObject({ ended: "oom" });
      }
      expect(await execute(backend, "kill -s KILL $$")).toEqual({ output: "", omitted: 0, exitCode: null, signal: "SIGKILL" });
    }, 60000);
    test("killAll", async () => {
      const p = execute(backend, "echo hi; sleep 100");
      await sleep(300);
      const { signal } = new AbortController();
      const t = performance.now();
      await shell.killAll(signal);
      const t2 = performance.now();
      console.log("killAll", t2 - t, await p, performance.now() - t);
      expect((await execute(backend, "echo on")).output).toBe("on\n");
      console.log((await execute(backend, "ps -o pid,user,args 2>/dev/null || ls /proc | grep '^[0-9]'")).output);
    });
    test("kill -9 -1 by the tenant", async () => {
      console.log(await execute(backend, "kill -s KILL -- -1; echo on"));
      expect((await execute(backend, "echo on")).output).toBe("on\n");
    });
    test("fork bomb", async () => {
      const t = performance.now();
      const r = await execute(backend, "f() { f | f & }; f; sleep 1; echo end", { timeoutMs: 2000 });
      console.log("bomb", performance.now() - t, r.exitCode, r.ended, r.output.slice(-200));
      const t1 = performance.now();
      console.log("after", await execute(backend, "echo on").catch((e) => String(e)), performance.now() - t1);
      await sleep(500);
      const t2 = performance.now();
      const { signal } = new AbortController();
      await shell.killAll(signal).catch((e) => console.log("killAll failed", String(e)));
      console.log("killAll", performance.now() - t2);
      expect((await execute(backend, "echo on")).output).toBe("on\n");
    }, 60000);
    test("paused", async () => {
      const t = performance.now();
      const p = execute(backend, "echo a; sleep 100", { timeoutMs: 500 });
      await sleep(200);
      await c.pause();
      const r = await p;
      console.log("frozen", performance.now() - t, r);
      await c.unpause();
      expect((await execute(backend, "echo on")).output).toBe("on\n");
      console.log((await execute(backend, "ps -o pid,user,args 2>/dev/null")).output);
    }, 60000);
    test("container gone", async () => {
      const p = execute(backend, "echo a; sleep 100");
      await sleep(200);
      const t = performance.now();
      await c.kill();
      console.log("gone", await p, performance.now() - t);
      const t1 = performance.now();
      console.log(await execute(backend, "true").catch((e) => e), performance.now() - t1);
    });
  });
}
