import { existsSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Backend, ExecResult } from "../../../src/agent/core/backend.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import { killTree } from "../../../src/sandbox/shell/kill-tree.ts";
import { commandsContract } from "../../contracts/backend/index.ts";
import { drained, refuses } from "../../support/backend.ts";
import { childShell, describeShells } from "../../support/child-shell.ts";
import { lives, newFolder, opened, readerOf, shellIn } from "../../support/shell-commands.ts";

describeShells("a sandbox with", (command) => {
  commandsContract(async () => {
    const folder = await newFolder();
    const shell = shellIn(folder, childShell({ shell: command, cwd: folder }));
    const backend = { exec: shell.exec.bind(shell), ...plainFiles(folder) };
    // The tests of commands use no other part of it.
    return { backend: backend as unknown as Backend, close: async () => shell.close(new Error("the end")) };
  });

  test("distinguishes death from an exit with the same status", async () => {
    const { execute } = await opened(command);
    for (const [name, number] of [
      ["TERM", 15],
      ["SEGV", 11],
      ["HUP", 1],
      ["USR1", 10],
    ] as const) {
      const killed = await execute(`echo x; kill -s ${name} $$`);
      expect(killed).toEqual({ output: "x\n", omitted: 0, exitCode: null, signal: `SIG${name}` });
      expect(await execute(`exit ${128 + number}`)).toEqual({
        output: "",
        omitted: 0,
        exitCode: 128 + number,
      });
    }
    expect((await execute("kill -s INT $$")).exitCode).toBe(130);
    expect((await execute("kill -s PIPE $$")).exitCode).toBe(141);
    expect((await execute("sh -c 'kill -s KILL $$'; exit 3")).exitCode).toBe(3);
  });

  test("runs only the command's own text, line by line", async () => {
    const { execute } = await opened(command);
    expect((await execute("echo a\nno-such-tool")).output).toMatch(/^a\n.*2: no-such-tool/);
    expect((await execute("if then")).output).toMatch(/1: Syntax error/);
    for (const text of ["", "#", "&& x", "; ;", "'", "$(", ") | echo x", "} | echo x", "<<EOF\nx"])
      expect((await execute(text)).output).not.toBe("x\n");
    expect((await execute("echo next")).output).toBe("next\n");
  });

  test("gives a command its own environment, files and session", async () => {
    const { execute } = await opened(command);
    const environment = (await execute("env")).output.match(/^\w+(?==)/gm)?.sort();
    expect(environment?.filter((name) => name !== "SHLVL" && name !== "_")).toEqual([
      ...["HOME", "PATH", "PWD", "SKEIN_JOB"],
    ]);
    const links = (await execute("ls -l /proc/self/fd")).output.match(/(?<= )\d+ -> .*/g) ?? [];
    // Node hands on what it was itself given above 2; what the session's shell holds must not be among it.
    const inherited = await Promise.all(
      links.map((link) => existsSync(`/proc/self/fd/${parseInt(link, 10)}`)),
    );
    expect(links.filter((_, index) => !inherited[index]).length).toBeLessThanOrEqual(1);
    expect(links.slice(0, 3).map((link) => link.replace(/\d+\]/, ""))).toEqual([
      ...["0 -> /dev/null", "1 -> pipe:[", "2 -> pipe:["],
    ]);
    const [pid, group, session] = (await execute("cut -d' ' -f1,5,6 /proc/$$/stat")).output.trim().split(" ");
    expect([group, session]).toEqual([pid, pid]);
  });

  test("reports lost output if its reader was killed", async () => {
    const { execute, start, file, write } = await opened(command);
    const running = start("echo $$ > pid; echo on; while [ ! -e go ]; do sleep 0.01; done");
    await running.next();
    process.kill(await readerOf(await file("pid")), "SIGKILL");
    await write("go");
    expect(await drained(running)).toEqual({
      ...{ output: "on\n", omitted: 0, exitCode: null, ended: "output-lost" },
    });
    expect((await execute("echo next")).output).toBe("next\n");
  });

  test("reports a lost sandbox if its shell was killed, and ends the rest of the command", async () => {
    const { execute, file } = await opened(command);
    const killSession = "kill -s KILL -- -$(cut -d' ' -f5 /proc/$PPID/stat)";
    const result = await execute(`echo $$ > pid; ${killSession}; sleep 300`);
    expect(result).toMatchObject({ exitCode: null, ended: "sandbox-lost" });
    await expect.poll(async () => lives(await file("pid"))).toBe(false);
    expect((await execute("echo next")).output).toBe("next\n");
  });
});

/** As much of the port as the tests of commands need, on the folder itself. */
function plainFiles(folder: string): Pick<Backend, "read" | "write" | "stat" | "remove"> {
  return {
    async *read(path) {
      yield await readFile(join(folder, path));
    },
    async write(path, data) {
      if (!(data instanceof Uint8Array)) throw new Error("not needed here");
      await writeFile(join(folder, path), data);
      return data.length;
    },
    async stat(path) {
      const { size } = await stat(join(folder, path)).catch(() => {
        throw new AppError("not_found", path);
      });
      return { path, type: "file", size, modified_at: "" };
    },
    remove: (path) => rm(join(folder, path)),
  };
}

const { signal } = new AbortController();

describe("a command", () => {
  test("never gets the output of an earlier command's background process", async () => {
    const { execute, write } = await opened();
    expect((await execute("(while [ ! -e go ]; do echo LATE; sleep 0.002; done) & echo x")).output).toContain(
      "x\n",
    );
    for (let index = 0; index < 30; index++)
      expect((await execute(`echo ${index}`)).output).toBe(`${index}\n`);
    await write("go");
  });

  test("waits for its turn behind sixteen others, and is refused behind 64 more", async () => {
    const { execute, write, shell } = await opened();
    const running = Array.from({ length: 80 }, (_, index) =>
      execute(`while [ ! -e go ]; do sleep 0.05; done; echo ${index}`),
    );
    await refuses(() => execute("echo more"), "unavailable", "64");
    expect(shell.isBusy).toBe(true);
    await write("go");
    const outputs = (await Promise.all(running)).map(({ output }) => output);
    expect(outputs).toEqual(outputs.map((_, index) => `${index}\n`));
    expect(shell.isBusy).toBe(false);
    expect((await execute("echo more")).output).toBe("more\n");
  });

  test("that waits for its turn can be cancelled without starting", async () => {
    const { execute, write, folder } = await opened();
    const running = Array.from({ length: 16 }, () => execute("while [ ! -e go ]; do sleep 0.05; done"));
    const abort = new AbortController();
    const waiting = execute("echo x > started", { signal: abort.signal });
    abort.abort();
    expect(await waiting).toEqual({ output: "", omitted: 0, exitCode: null, ended: "cancelled" });
    await write("go");
    await Promise.all(running);
    expect(existsSync(join(folder, "started"))).toBe(false);
  });

  test("that is cancelled right at its start leaves nothing behind", async () => {
    const { execute, shell } = await opened();
    await execute(":");
    for (let count = 0; count < 40; count++) {
      const abort = new AbortController();
      const running = execute(`exec sleep 300.${process.pid}`, { signal: abort.signal });
      await shell.runOnce({ script: ":" }, signal);
      for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
      abort.abort();
      expect((await running).ended).toBe("cancelled");
    }
    const left = () => execute(`ps -eo args | grep -c '[s]leep 300.${process.pid}'`);
    await expect.poll(async () => (await left()).output).toBe("0\n");
  });

  test("starts in a live shell, even if others were killed", async () => {
    const { execute, start, write } = await opened();
    const running = Array.from({ length: 8 }, () =>
      start("echo on; while [ ! -e go ]; do sleep 0.01; done; echo $PPID"),
    );
    await Promise.all(running.map((stream) => stream.next()));
    await write("go");
    const parents = await Promise.all(running.map((stream) => drained(stream)));
    expect(new Set(parents.map(({ output }) => output)).size).toBe(8);
    const session = (await execute("cut -d' ' -f4 /proc/$PPID/stat")).output;
    process.kill(Number(session), "SIGKILL");
    const later = await Promise.all(Array.from({ length: 8 }, () => execute("echo $PPID")));
    for (const { output } of later) expect(Number(output)).toBeGreaterThan(0);
  });

  test("that cannot be ended does not delay its caller", async () => {
    const { execute, start, file } = await opened();
    const abort = new AbortController();
    const running = start("echo $$ > pid; echo on; sleep 300", { signal: abort.signal });
    await running.next();
    const reader = await readerOf(await file("pid"));
    process.kill(reader, "SIGSTOP");
    abort.abort();
    expect(await drained(running)).toMatchObject({ output: "on\n", ended: "cancelled" });
    process.kill(reader, "SIGKILL");
    expect((await execute("echo next")).output).toBe("next\n");
  });

  test("waits for a slow reader", async () => {
    const { start, file } = await opened();
    const stream = start(
      "echo 0 > count; while :; do printf %10000s x; n=$((n+1)); echo $n > count.new; mv count.new count; done",
    );
    await stream.next();
    let [last, same] = [-1, 0];
    while (same < 20) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      const now = Number(await file("count"));
      same = now === last ? same + 1 : 0;
      last = now;
    }
    expect(last * 10_000).toBeLessThan(2_000_000);
    await stream.return(undefined as never);
  });

  test("takes no memory, however much it prints", async () => {
    const { execute } = await opened();
    const before = process.memoryUsage().rss;
    expect(await execute("head -c 10737418240 /dev/zero")).toMatchObject({ ended: "output-limit" });
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
  });

  test("reports exhausted memory only if it was killed for that", async () => {
    const { start, execute, shell } = await opened();
    const during = async (text: string): Promise<ExecResult> => {
      const stream = start(`echo on; ${text}`);
      await stream.next();
      shell.noteOom();
      return drained(stream);
    };
    expect(await during("kill -s KILL $$")).toMatchObject({
      ended: "oom",
      exitCode: null,
      signal: "SIGKILL",
    });
    expect(await during("sleep 0.01; exit 137")).toMatchObject({ ended: "oom", exitCode: 137 });
    expect(await during("exit 1")).toEqual({ output: "on\n", omitted: 0, exitCode: 1 });
    const late = execute("echo > dead; kill -s KILL $$");
    await expect.poll(() => shell.isBusy).toBe(true);
    const noting = setInterval(() => shell.noteOom(), 20);
    expect(await late).toMatchObject({ ended: "oom" });
    clearInterval(noting);
    expect(await execute("kill -s KILL $$")).not.toHaveProperty("ended");
  });
});

describe("a command's background processes", () => {
  test("continue while they hold the output open, up to eight of them", async () => {
    const { execute, file } = await opened();
    const leave = (index: number) => execute(`sleep 300 & echo $! > pid${index}`);
    await leave(0);
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(leave));
    await expect.poll(async () => lives(await file("pid0"))).toBe(false);
    for (let index = 1; index < 9; index++) expect(await lives(await file(`pid${index}`))).toBe(true);
    await execute("kill -s KILL $(cat pid?)");
  });

  test("do not keep the server busy, however much they print", async () => {
    const { execute } = await opened();
    // It comes when the shell has ended: what comes before depends on when a busy machine lets the shell end.
    const flood =
      "(while kill -0 $$ 2> /dev/null; do sleep 0.01; done; : > floods; exec yes) & echo $! > pid";
    const { exitCode, omitted } = await execute(flood);
    expect(exitCode).toBe(0);
    expect(omitted).toBeLessThan(5_000_000);
    await execute("while [ ! -e floods ]; do sleep 0.01; done");
    const [begun, before] = [performance.now(), process.threadCpuUsage()];
    await execute("sleep 0.3");
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(0.8 * (performance.now() - begun));
    await execute("kill -s KILL $(cat pid)");
  });
});

describe("ending a command", () => {
  test("spares a process that reuses its number", async () => {
    const { shell, execute, file } = await opened();
    await execute("setsid sleep 300 >/dev/null 2>&1 & echo $! > pid");
    const pid = Number(await file("pid"));
    const end = (startedAt: string) =>
      killTree(
        { id: "none", leader: Promise.resolve({ pid, startedAt }) },
        (script) => shell.runOnce({ script }, signal),
        signal,
      );
    const [, fields = ""] = /\) (.*)/.exec(await readFile(`/proc/${pid}/stat`, "utf8")) ?? [];
    const startedAt = fields.split(" ")[19] ?? "";
    await end(`${Number(startedAt) - 1}`);
    expect(await lives(`${pid}`)).toBe(true);
    await end(startedAt);
    expect(await lives(`${pid}`)).toBe(false);
  });
});

describe("a closed shell", () => {
  test("ends running commands as lost but keeps background processes, and fails waiting and later calls", async () => {
    const { shell, start, execute, file } = await opened();
    await execute("sleep 300 & echo $! > background; cut -d' ' -f4 /proc/$PPID/stat > session");
    const names = Array.from({ length: 16 }, (_, index) => `pid${index}`);
    const running = names.map((name) => start(`echo $$ > ${name}; echo on; exec sleep 300`));
    await Promise.all(running.map((stream) => stream.next()));
    const waiting = expect(execute("echo never")).rejects.toThrow("the end");
    shell.close(new Error("the end"));
    for (const stream of running)
      expect(await drained(stream)).toMatchObject({ ended: "sandbox-lost", exitCode: null });
    await waiting;
    await expect(execute("echo never")).rejects.toThrow("the end");
    for (const name of names) await expect.poll(async () => lives(await file(name))).toBe(false);
    const session = (await file("session")).trim();
    const beside = async () =>
      (await readFile(`/proc/${session}/task/${session}/children`, "utf8").catch(() => "")).trim().split(" ");
    // The reader of the output is left, and nothing that would end the process.
    await expect.poll(async () => (await beside()).length).toBe(1);
    expect(await lives(await file("background"))).toBe(true);
  });
});
