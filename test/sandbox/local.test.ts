import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Backend } from "../../src/agent/core/backend.ts";
import { backendContract } from "../contracts/backend/index.ts";
import { drained, execute, readAll, refuses } from "../support/backend.ts";
import { ada, opened } from "./opened.ts";

const { signal } = new AbortController();

describe("the local backend", () => {
  backendContract(async () => {
    const { pool, backend } = await opened();
    return { backend, close: () => pool.close() };
  });
});

describe("this machine", () => {
  test("commands see nothing of the server's environment", async () => {
    process.env.SKEIN_TEST_SECRET = "s3cret";
    const { backend } = await opened();
    const { output } = await execute(backend, "env; cat /proc/self/environ | tr '\\0' '\\n'");
    delete process.env.SKEIN_TEST_SECRET;
    expect(output).not.toContain("s3cret");
    const names = new Set(output.split("\n").map((line) => line.split("=")[0]));
    expect([...names].sort()).toEqual([
      "",
      "HOME",
      "LANG",
      "PATH",
      "PWD",
      "SKEIN_JOB",
      "TERM",
      "TMPDIR",
      "WORKSPACE",
    ]);
  });

  test("a file also has its real path, as commands print it", async () => {
    const { backend } = await opened();
    const real = (await execute(backend, 'mkdir a; echo x > a/b; printf "$WORKSPACE/a/b"')).output;
    expect(String(await readAll(backend, real))).toBe("x\n");
    expect((await backend.stat(real, signal)).path).toBe("/workspace/a/b");
    await refuses(() => backend.stat(`${real}/../../../x`, signal), "backend_refused", "workspace");
  });

  test("no failure of a file operation reveals the workspace's real path", async () => {
    const { backend, dataDir } = await opened();
    await execute(backend, "ln -s /etc/passwd out; ln -s loop loop; mkfifo pipe; mkdir folder");
    const attempts = ["gone/x", "out", "loop", "pipe", "folder", "..", "n".repeat(300)].flatMap((path) => [
      () => readAll(backend, path),
      () => backend.write(path, Buffer.from("x"), signal),
      () => backend.list(path, signal),
      () => backend.remove(`${path}/x`, signal),
    ]);
    for (const attempt of attempts)
      await attempt().catch((error: Error) => expect(error.message).not.toContain(dataDir));
  });

  test("only the server's user can read a workspace", async () => {
    const { dataDir, backend } = await opened();
    await backend.write("f", Buffer.from("x"), signal);
    const [folder = ""] = await readdir(join(dataDir, "workspaces"));
    expect((await stat(join(dataDir, "workspaces", folder))).mode & 0o777).toBe(0o700);
  });

  test("is recreated if a command has removed the workspace itself", async () => {
    const { backend } = await opened();
    await execute(backend, 'rm -rf "$WORKSPACE"');
    expect((await execute(backend, "echo here")).output).toBe("here\n");
    await execute(backend, 'rm -rf "$WORKSPACE" "$WORKSPACE/../staging"');
    await backend.write("f", Buffer.from("x"), signal);
    expect(String(await readAll(backend, "f"))).toBe("x");
  });

  test("removes a tree of any depth and of any names", async () => {
    const { backend, dataDir } = await opened();
    const digger = `
      for (let depth = 0; depth < 60; depth++) { fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)); }
      fs.writeFileSync(Buffer.from([0x66, 0xff]), "x");
      fs.chmodSync(".", 0o500);`;
    expect(await execute(backend, `mkdir deep; cd deep; '${process.execPath}' -e '${digger}'`)).toMatchObject(
      {
        exitCode: 0,
      },
    );
    await backend.remove("deep", signal);
    expect(await backend.list(".", signal)).toEqual([]);
    expect(spawnSync("find", [dataDir, "-name", "d*"]).stdout.toString()).toBe("");
  });

  test("keeps no file open", async () => {
    const { backend } = await opened();
    await execute(backend, "mkdir d; echo x > d/f; ln -s /etc out; ln -s /etc/passwd p; mkfifo pipe");
    const before = (await readdir("/proc/self/fd")).length;
    for (let round = 0; round < 5; round++) {
      for (const path of ["d/f", "d", "out/passwd", "p", "pipe", "gone", "d/f/x", "..", "."])
        await Promise.allSettled([
          readAll(backend, path),
          backend.stat(path, signal),
          backend.list(path, signal),
          backend.edit(path, "x", "x", signal),
          backend.write(`${path}/new`, Buffer.from("x"), signal),
          backend.grep("x", path, undefined, signal),
        ]);
      for await (const _ of backend.read("d/f", {}, signal)) break;
      await execute(backend, "exit 1");
    }
    await expect.poll(async () => (await readdir("/proc/self/fd")).length).toBeLessThanOrEqual(before + 2);
  });
});

describe("a command that swaps links during an operation", () => {
  /** `here` leads in turn to a folder inside and to one outside, until the test is over. */
  async function swapping(): Promise<{ backend: Backend; outside: string; stop(): Promise<unknown> }> {
    const { backend, dataDir } = await opened();
    const outside = join(dataDir, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "f"), "SECRET");
    await execute(backend, "mkdir inside; echo mine > inside/f; ln -s inside here");
    const swapper = `for (;;) for (const folder of ["inside", "${outside}"]) {
      fs.symlinkSync(folder, "next");
      fs.renameSync("next", "here");
    }`;
    const abort = new AbortController();
    const command = `echo going; exec '${process.execPath}' -e '${swapper}'`;
    const swap = drained(backend.exec(command, { signal: abort.signal, timeoutMs: 300_000 }));
    return {
      backend,
      outside,
      stop() {
        abort.abort();
        return swap;
      },
    };
  }

  /** Tries until both have happened, and often enough. */
  async function often(attempt: () => Promise<unknown>): Promise<void> {
    const count = { done: 0, refused: 0 };
    while (count.done < 50 || count.refused < 50)
      await attempt().then(
        () => count.done++,
        (error: { code: string }) => {
          expect(["backend_refused", "not_found"]).toContain(error.code);
          count.refused++;
        },
      );
  }

  test("never makes a read leave the workspace", async () => {
    const { backend, stop } = await swapping();
    await often(async () => expect(String(await readAll(backend, "here/f"))).toBe("mine\n"));
    await often(async () => {
      for (const { path } of await backend.list("here", signal)) expect(path).toBe("/workspace/inside/f");
    });
    await stop();
  });

  test("never makes a write or a removal leave it", async () => {
    const { backend, outside, stop } = await swapping();
    await often(() => backend.write("here/f", Buffer.from("mine"), signal));
    await often(() => backend.write("here/a/b", Buffer.from("mine"), signal));
    await often(async () => {
      await backend.write("inside/f", Buffer.from("mine"), signal);
      await backend.remove("here/f", signal);
    });
    await stop();
    expect(await readdir(outside)).toEqual(["f"]);
    expect(await readFile(join(outside, "f"), "utf8")).toBe("SECRET");
  });
});

describe("endless output", () => {
  test("takes no memory, however long it is", async () => {
    const { backend } = await opened();
    const before = process.memoryUsage().rss;
    const result = await execute(backend, "head -c 10737418240 /dev/zero");
    expect(result).toMatchObject({ ended: "output-limit" });
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
  });

  test("is complete even if the server is too busy to read it immediately", async () => {
    const { backend } = await opened();
    const stream = backend.exec("echo $$ > pid; echo START; head -c 120000 /dev/zero; echo END", {
      signal,
      timeoutMs: 60_000,
    });
    await stream.next();
    const pid = Number(await readAll(backend, "pid"));
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
    // Right after the command's own turn comes work that takes longer than its output is waited for.
    const turn = nextTurn();
    setImmediate(() => {
      const until = performance.now() + 300;
      while (performance.now() < until);
    });
    await turn;
    const { output, omitted } = await drained(stream);
    expect(output.endsWith("\0END\n")).toBe(true);
    expect(omitted).toBe(20_010);
  });

  test("is complete even if it is read long after the command's end", async () => {
    const { backend } = await opened();
    const command = "echo $$ > pid; echo START; while [ ! -e go ]; do sleep 0.01; done; echo END";
    const stream = backend.exec(command, { signal, timeoutMs: 60_000 });
    await stream.next();
    await backend.write("go", Buffer.from(""), signal);
    const pid = Number(await readAll(backend, "pid"));
    await expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
    await execute(backend, "sleep 0.3");
    expect((await drained(stream)).output).toBe("START\nEND\n");
  });

  test("waits for a slow reader", async () => {
    const { backend } = await opened();
    const stream = backend.exec(
      "echo 0 > count; while :; do printf %10000s x; n=$((n+1)); echo $n > count.new; mv count.new count; done",
      { signal, timeoutMs: 60_000 },
    );
    await stream.next();
    const count = async () => Number(await readAll(backend, "count"));
    let [last, same] = [await count(), 0];
    while (same < 20) {
      await execute(backend, "sleep 0.01");
      const now = await count();
      same = now === last ? same + 1 : 0;
      last = now;
    }
    expect(last * 10_000).toBeLessThan(2_000_000);
    await stream.return(undefined as never);
  });
});

test("at most 64 commands run in a workspace, also after some were refused", async () => {
  const { backend, pool } = await opened();
  const start = async () => {
    const stream = backend.exec("echo on; exec sleep 300", { signal, timeoutMs: 300_000 });
    await stream.next();
    return stream;
  };
  const [first] = await Promise.all(Array.from({ length: 64 }, start));
  for (let again = 0; again < 2; again++) await refuses(start, "unavailable", "64 commands");
  await first?.return(undefined as never);
  await start();
  await refuses(start, "unavailable", "64 commands");
  await pool.close();
});

describe("deleting a workspace", () => {
  test("leaves nothing behind, even if more deletions start during one", async () => {
    const { backend, pool } = await opened();
    await execute(backend, "for i in $(seq 40); do mkdir -p d$i/a/b/c && echo x > d$i/a/f; done");
    let isOver = false;
    const first = pool.erase(ada).finally(() => (isOver = true));
    while (!isOver) await pool.erase(ada);
    await first;
    expect(await pool.erase(ada)).toBe(0);
    await pool.close();
  });
});

describe("a command's background processes", () => {
  test("do not keep the server busy, however much they print", async () => {
    const { backend, pool } = await opened();
    // It comes when the shell has ended: what comes before depends on when a busy machine lets the shell end.
    const flood = "(while kill -0 $$ 2> /dev/null; do sleep 0.01; done; : > floods; exec yes) & echo started";
    const { exitCode, omitted } = await execute(backend, flood);
    expect(exitCode).toBe(0);
    expect(omitted).toBeLessThan(5_000_000);
    await execute(backend, "while [ ! -e floods ]; do sleep 0.01; done");
    const [begun, before] = [performance.now(), process.threadCpuUsage()];
    await execute(backend, "sleep 0.3");
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(0.8 * (performance.now() - begun));
    await pool.close();
  });

  const alive = (pid: number) => {
    const status = spawnSync("grep", ["^State:", `/proc/${pid}/status`]).stdout.toString();
    return status !== "" && !status.includes("Z");
  };
  const pidIn = async (backend: Backend, path: string) => Number(await readAll(backend, path));

  test("continue while they hold the output open, up to eight of them", async () => {
    const { backend, pool } = await opened();
    const leave = (index: number) => execute(backend, `sleep 300 & echo $! > pid${index}`);
    await leave(0);
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(leave));
    const first = await pidIn(backend, "pid0");
    await expect.poll(() => alive(first)).toBe(false);
    for (let index = 1; index < 9; index++) expect(alive(await pidIn(backend, `pid${index}`))).toBe(true);
    await pool.close();
  });

  test("end with the backend, however they were started", async () => {
    const { backend, pool } = await opened();
    await execute(backend, "sleep 300 & echo $! > a; sleep 300 > /dev/null 2>&1 & echo $! > b");
    await execute(
      backend,
      "setsid sh -c 'trap \"\" TERM; echo $$ > c; sleep 300; :' > log 2>&1 & while [ ! -s c ]; do sleep 0.01; done",
    );
    const pids = await Promise.all(["a", "b", "c"].map((path) => pidIn(backend, path)));
    expect(pids.map(alive)).toEqual([true, true, true]);
    await pool.stop({ tenant: "acme", user: "ada" }, { type: "local", name: "code" });
    expect(pids.map(alive)).toEqual([false, false, false]);
    expect((await execute(backend, "ls")).output).toBe("a\nb\nc\nlog\n");
  });

  test("end when the next server opens the workspace of one that was killed", async () => {
    const { backend, dataDir, pool } = await opened();
    const server = fork(join(import.meta.dirname, "../support/local-server/main.ts"), [dataDir]);
    await once(server, "message");
    const pid = await pidIn(backend, "pid");
    const staging = spawnSync("find", [dataDir, "-path", "*/staging/*", "-type", "f"]).stdout.toString();
    expect(staging).not.toBe("");
    server.kill("SIGKILL");
    await once(server, "exit");
    expect(alive(pid)).toBe(true);
    const other = await opened({ dataDir });
    expect(alive(pid)).toBe(false);
    expect(spawnSync("find", [dataDir, "-path", "*/staging/*", "-type", "f"]).stdout.toString()).toBe("");
    await Promise.all([pool.close(), other.pool.close()]);
  });

  test("of a running server are not affected", async () => {
    const { backend, dataDir } = await opened();
    const stream = backend.exec("echo on; while [ ! -e go ]; do sleep 0.01; done; echo off", {
      signal,
      timeoutMs: 60_000,
    });
    await stream.next();
    await opened({ dataDir });
    await backend.write("go", Buffer.from(""), signal);
    expect((await drained(stream)).output).toBe("on\noff\n");
    expect(existsSync(dataDir)).toBe(true);
  });
});
