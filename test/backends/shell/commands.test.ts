import { existsSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Backend } from "../../../src/core/backend.ts";
import { AppError } from "../../../src/core/errors.ts";
import { commandsContract } from "../../contracts/backend/index.ts";
import { drained } from "../../support/backend.ts";
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

  test("tells death from an exit with the same status", async () => {
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

  test("runs nothing but the command's own text, line by line", async () => {
    const { execute } = await opened(command);
    expect((await execute("echo a\nno-such-tool")).output).toMatch(/^a\n.*2: no-such-tool/);
    expect((await execute("if then")).output).toMatch(/1: Syntax error/);
    for (const text of ["", "#", "&& x", "; ;", "'", "$(", ") | echo x", "} | echo x", "<<EOF\nx"])
      expect((await execute(text)).output).not.toBe("x\n");
    expect((await execute("echo next")).output).toBe("next\n");
  });

  test("gives a command an environment, files and a session of its own", async () => {
    const { execute } = await opened(command);
    const environment = (await execute("env")).output.match(/^\w+(?==)/gm)?.sort();
    expect(environment?.filter((name) => name !== "SHLVL" && name !== "_")).toEqual([
      ...["HOME", "PATH", "PWD", "SKEIN_JOB"],
    ]);
    const links = (await execute("ls -l /proc/self/fd")).output.match(/(?<= )\d+ -> .*/g) ?? [];
    // Node hands on what it was itself given above 2; what the lane's shell holds must not be among it.
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

  test("says that output is lost when what reads it was killed", async () => {
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

  test("says that the sandbox is lost when its shell was killed, and ends what is left of the command", async () => {
    const { execute, file } = await opened(command);
    const killLane = "kill -s KILL -- -$(cut -d' ' -f5 /proc/$PPID/stat)";
    const result = await execute(`echo $$ > pid; ${killLane}; sleep 300`);
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
