import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { chown, mkdir, mkdtemp, realpath, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { editing } from "../../../src/backends/edit.ts";
import { searching } from "../../../src/backends/search.ts";
import { clearStaging, shellFiles } from "../../../src/backends/shell/files.ts";
import { PRELUDE } from "../../../src/backends/shell/prelude.ts";
import { LaneLost, type Runner } from "../../../src/backends/shell/runner.ts";
import { Shell } from "../../../src/backends/shell/shell.ts";
import type { Backend } from "../../../src/core/backend.ts";
import type { AppError } from "../../../src/core/errors.ts";
import { filesContract } from "../../contracts/backend/index.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import { childShell } from "../../support/child-shell.ts";

const { signal } = new AbortController();
/** Root may do everything, so it is nobody to test with. */
const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : undefined;

const folders: string[] = [];
const shells: Shell[] = [];
afterAll(() => {
  for (const shell of shells) shell.close(new Error("the tests are over"));
  for (const folder of folders) {
    spawnSync("umount", ["-q", join(folder, "small")]);
    // No other is sure to reach the ground.
    spawnSync("rm", ["-rf", folder]);
  }
});

async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-shell-")));
  folders.push(folder);
  if (USER) await chown(folder, USER.uid, USER.gid);
  return folder;
}

const found = (command: string) =>
  spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).stdout.trim();

/** By name; each with its own tools, as far as it has any. */
const SHELLS: Record<string, readonly [string, ...string[]]> = {
  dash: ["dash"],
  "bash --posix": ["bash", "--posix"],
  busybox: ["busybox", "sh"],
};

/** Where busybox finds nothing but itself. */
async function applets(busybox: string): Promise<string> {
  const folder = await newFolder();
  const names = spawnSync(busybox, ["--list"], { encoding: "utf8" }).stdout.split("\n");
  for (const name of names.filter(Boolean)) await symlink(busybox, join(folder, name));
  return folder;
}

async function openShell([file, ...words]: readonly [string, ...string[]], cwd: string): Promise<Shell> {
  const path = file === "busybox" ? await applets(found(file)) : "/usr/bin:/bin";
  const user = USER && [found("setpriv"), `--reuid=${USER.uid}`, `--regid=${USER.gid}`, "--clear-groups"];
  const [first = "", ...rest] = [...(user ?? []), found(file), ...words];
  const channel = childShell({ shell: [first, ...rest], cwd, path });
  const shell = new Shell(channel, { workdir: cwd, prelude: PRELUDE, onSilence() {} });
  shells.push(shell);
  return shell;
}

/** What is lost is run again, once. */
const running = (runOnce: Runner["runOnce"]): Runner => ({
  runOnce,
  run: (fragment, signal) =>
    runOnce(fragment, signal).catch((error) => {
      if (!(error instanceof LaneLost)) throw error;
      return runOnce(fragment, signal);
    }),
});

/** Does everything twice that may be done twice. */
const repeating = (runner: Runner): Runner => ({
  ...runner,
  async run(fragment, signal) {
    await runner.run(fragment, signal);
    return runner.run(fragment, signal);
  },
});

/** Loses the sandbox once, before or after what it does as its `count`th. */
function losing({ runOnce }: Runner, count: number, when: "before" | "after"): Runner {
  let left = count;
  return running(async (fragment, signal) => {
    left--;
    if (left === 0 && when === "before") throw new LaneLost("lost by the test");
    const reply = await runOnce(fragment, signal);
    if (left === 0) throw new LaneLost("lost by the test");
    return reply;
  });
}

function backendOn(runner: Runner, workdir: string, exec: Backend["exec"] = noCommands): Backend {
  const files = shellFiles(runner, workdir);
  return { ...{ type: "shell", exec }, ...files, ...editing(files), ...searching(files) };
}

const noCommands = () => {
  throw new Error("not needed here");
};

async function* from(...chunks: Uint8Array[]) {
  yield* chunks;
}

async function openedWith(command: readonly [string, ...string[]], workdir?: string) {
  const folder = workdir ?? (await newFolder());
  const shell = await openShell(command, folder);
  const runner = running((fragment, signal) => shell.runOnce(fragment, signal));
  const backend = backendOn(runner, folder, (line, options) => shell.exec(line, options));
  const sh = async (line: string) => (await execute(backend, line)).output;
  return { runner, workdir: folder, backend, sh, staged: () => sh("ls -A .skein/staging") };
}

describe.each(Object.entries(SHELLS))("files by %s", (_, command) => {
  describe.skipIf(found(command[0]) === "")("and its tools", () => {
    const opened = (workdir?: string) => openedWith(command, workdir);

    filesContract(async () => {
      const { backend } = await opened();
      return { backend, close: async () => {} };
    });

    test("what may be done twice has the same effect as once", async () => {
      const { runner, workdir, staged } = await opened();
      const backend = backendOn(repeating(runner), workdir);
      await backend.write("d/text", Buffer.from("it's\n\n"), signal);
      await backend.write("d/bytes", Buffer.from([0, 255, 10]), signal);
      await backend.write("d/large", Buffer.alloc(3_000_000, 1), signal);
      await backend.write("d/streamed", from(Buffer.alloc(2_000_000, 2), Buffer.from("end")), signal);
      expect(String(await readAll(backend, "d/text"))).toBe("it's\n\n");
      expect([...(await readAll(backend, "d/bytes"))]).toEqual([0, 255, 10]);
      expect((await readAll(backend, "d/large")).equals(Buffer.alloc(3_000_000, 1))).toBe(true);
      expect((await readAll(backend, "d/streamed")).length).toBe(2_000_003);
      expect((await backend.list("d", signal)).length).toBe(4);
      expect((await backend.grep("it", ".", undefined, signal)).matches).toHaveLength(1);
      await backend.remove("d", signal);
      expect(await backend.list(".", signal)).toEqual([]);
      expect(await staged()).toBe("");
    });

    test("whenever the sandbox is lost, a write is done whole or says that nothing is changed", async () => {
      const { backend, runner, workdir, staged } = await opened();
      const [before, after] = [Buffer.from("before"), Buffer.alloc(1_100_000, 7)];
      for (const when of ["before", "after"] as const)
        for (let count = 1; count <= 6; count++) {
          await backend.write("f", before, signal);
          const lossy = backendOn(losing(runner, count, when), workdir);
          await lossy.write("f", after, signal);
          expect((await readAll(backend, "f")).equals(after)).toBe(true);

          await backend.write("f", before, signal);
          const streaming = backendOn(losing(runner, count, when), workdir);
          const error = await streaming.write("f", from(after), signal).then(
            () => undefined,
            (reason: AppError) => reason,
          );
          expect((await readAll(backend, "f")).equals(error ? before : after)).toBe(true);
          if (error) expect(error.message).toContain("lost while `f` was written; nothing was changed");
          expect(await staged()).toBe("");
        }
    });

    test("whenever the sandbox is lost, what was to be removed is removed", async () => {
      const { backend, runner, workdir, staged } = await opened();
      for (let count = 1; count <= 2; count++)
        for (const when of ["before", "after"] as const)
          for (const path of ["folder", "folder/file"]) {
            await backend.write("folder/file", Buffer.from("x"), signal);
            await backendOn(losing(runner, count, when), workdir).remove(path, signal);
            await refuses(() => backend.stat(path, signal), "not_found", path);
            // What is lost while it is erased is gone as well, but still to be erased.
            if (count === 1) expect(await staged()).toBe("");
          }
    });

    test("a file that is replaced while it is read is read to its own end", async () => {
      const { backend, staged } = await opened();
      await backend.write("f", Buffer.alloc(3_000_000, 1), signal);
      let size = 0;
      for await (const chunk of backend.read("f", {}, signal)) {
        if (size === 0) await backend.write("f", Buffer.alloc(4_000_000, 2), signal);
        size += chunk.length;
        expect(chunk.every((byte) => byte === 1)).toBe(true);
      }
      expect(size).toBe(3_000_000);
      expect(await staged()).toBe("");
    });

    test("where no link to a file can be made, one that is replaced while it is read is not mixed with the next", async () => {
      const { backend, sh } = await opened();
      await sh("echo mine > .skein; head -c 3000000 /dev/zero > f");
      expect((await readAll(backend, "f")).equals(Buffer.alloc(3_000_000))).toBe(true);
      const read = async () => {
        for await (const _ of backend.read("f", {}, signal)) await sh("echo next > g; mv g f");
      };
      await refuses(read, "backend_failed", "`f` was replaced");
      await refuses(() => backend.write("f", Buffer.from("x"), signal), "backend_refused", "`.skein`");
      await sh("mkdir d; echo x > d/f");
      await backend.remove("d", signal);
      expect(String(await readAll(backend, ".skein"))).toBe("mine\n");
      expect((await backend.list(".", signal)).map(({ path }) => path.split("/").at(-1))).toEqual([
        ".skein",
        "f",
      ]);
    });

    test("a reader that leaves, or is cancelled, leaves nothing behind", async () => {
      const { backend, staged } = await opened();
      await backend.write("f", Buffer.alloc(3_000_000, 1), signal);
      for await (const _ of backend.read("f", {}, signal)) break;
      const abort = new AbortController();
      const read = async () => {
        for await (const _ of backend.read("f", {}, abort.signal)) abort.abort(new Error("enough"));
      };
      await expect(read()).rejects.toThrow("enough");
      expect(await staged()).toBe("");
    });

    test("a write that is cancelled, or whose source fails, leaves nothing behind", async () => {
      const { backend, staged } = await opened();
      const abort = new AbortController();
      async function* silent() {
        yield Buffer.alloc(2_500_000);
        abort.abort(new Error("enough"));
        await new Promise(() => {});
      }
      await expect(backend.write("f", silent(), abort.signal)).rejects.toThrow("enough");
      async function* broken() {
        yield Buffer.alloc(2_500_000);
        throw new Error("the line went dead");
      }
      await expect(backend.write("f", broken(), signal)).rejects.toThrow("the line went dead");
      await refuses(() => backend.stat("f", signal), "not_found", "`f`");
      expect(await staged()).toBe("");
    });

    test("reads any range of a large file", async () => {
      const { backend } = await opened();
      const bytes = Buffer.from(
        Array.from({ length: 1_500_000 }, (_, index) => (index * 2_654_435_761) >>> 24),
      );
      await backend.write("f", bytes, signal);
      for (const [offset, length] of [
        [1, 70_000],
        [65_535, 2],
        [65_536, 1_300_000],
        [400_001, 524_288],
        [1_499_999, 10],
        [1_500_000, 10],
        [Number.MAX_SAFE_INTEGER, 1],
      ] as const) {
        const part = await readAll(backend, "f", { offset, length });
        expect(part.equals(bytes.subarray(offset, offset + length))).toBe(true);
      }
      expect((await readAll(backend, "f", { offset: 77_777 })).equals(bytes.subarray(77_777))).toBe(true);
    });

    test("text comes back as it was, whatever the shell makes of it", async () => {
      const { backend } = await opened();
      const texts = [
        "'".repeat(98_304),
        "\\n\\0%s%d\n\n\n",
        Array.from({ length: 127 }, (_, index) => String.fromCharCode(index + 1)).join(""),
        "é漢🧵\u2028\ufeff".repeat(5000),
        "\r\n\n",
      ];
      for (const text of texts) {
        await backend.write("f", Buffer.from(text), signal);
        expect(String(await readAll(backend, "f"))).toBe(text);
      }
    });

    test("a name may have any bytes, and 255 of them", async () => {
      const { backend, sh } = await opened();
      const long = "漢".repeat(85);
      await backend.write(`${long}/${long}`, Buffer.from("x"), signal);
      expect((await backend.stat(`${long}/${long}`, signal)).size).toBe(1);
      await sh(`cd ${long}; : > "$(printf 'a\\377')"; : > "$(printf 'a\\376')"; : > "$(printf '.\\377')"`);
      expect(await backend.list(long, signal)).toHaveLength(4);
      expect((await backend.glob("**", long, signal)).matches).toHaveLength(4);
      expect((await backend.grep("x", long, undefined, signal)).matches).toHaveLength(1);
    });

    test("a path may be as long as the system allows, and ends there in words", async () => {
      const { backend } = await opened();
      const path = (length: number) => `${"d".repeat(99)}/`.repeat(length / 100 - 1).padEnd(length, "f");
      await backend.write(path(3900), Buffer.from("x"), signal);
      expect(String(await readAll(backend, path(3900)))).toBe("x");
      expect((await backend.glob("f*", ".", signal)).matches).toEqual([path(3900)]);
      for (const length of [4070, 4090, 4096])
        await backend.write(path(length), Buffer.from("x"), signal).catch((error: AppError) => {
          expect(error.message).toMatch(/too long/);
        });
    });

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
        "fixed/d/f",
        "fixed/f",
      ]);
      await backend.write("secret", Buffer.from("mine"), signal);
      await backend.remove("shut", signal);
      await sh("chmod 755 fixed");
    });

    test("what is staged is nobody's business, and comes back when it was removed", async () => {
      const { backend, sh, staged } = await opened();
      await backend.write("f", Buffer.from("x"), signal);
      expect(await sh("ls -ld .skein/staging | cut -c1-10")).toBe("drwx------\n");
      expect((await backend.list(".", signal)).map(({ path }) => path.split("/").at(-1))).toEqual(["f"]);
      await sh("echo x > .skein/staging/x");
      for (const pattern of ["**", ".skein/**", ".skein/staging/*"])
        expect((await backend.glob(pattern, ".", signal)).matches).not.toContain(".skein/staging/x");
      expect((await backend.glob("*", ".skein", signal)).matches).toEqual([]);
      for (const path of [".skein/staging", ".skein/staging/x", "./.skein//staging/x/y"])
        await refuses(() => backend.write(path, Buffer.from("y"), signal), "backend_refused", "another path");
      await backend.write(".skein/results/r", Buffer.from("y"), signal);
      expect((await backend.glob("r", ".skein", signal)).matches).toEqual([".skein/results/r"]);
      await sh("chmod 000 .skein/staging");
      await backend.write("f", Buffer.from("x"), signal);
      await backend.remove(".skein", signal);
      await sh("mkdir .skein; ln -s /tmp .skein/staging");
      await refuses(() => backend.write("f", Buffer.from("y"), signal), "backend_refused", ".skein");
      await backend.remove(".skein", signal);
      await backend.write("f", Buffer.from("x"), signal);
      expect(await staged()).toBe("");
    });

    test("what operations have left behind is cleared, but not what goes on", async () => {
      const { backend, runner, workdir, sh, staged } = await opened();
      await clearStaging(runner, workdir, signal);
      await backend.write("f", Buffer.from("x"), signal);
      const now = Math.floor(Date.now() / 1000);
      await sh(
        `cd .skein/staging; touch -- ${now - 100}-a ${now}-b strange .hidden -rf; mkdir -p ${now - 100}-c/d; chmod 500 ${now - 100}-c; ln -s / ${now - 100}-d`,
      );
      await clearStaging(runner, workdir, signal);
      await expect.poll(staged).toBe(`${now}-b\n`);
      expect((await backend.list(".", signal)).length).toBe(1);
    });

    test("removes a tree of any depth", async () => {
      const { backend, sh, staged } = await opened();
      const name = "d".repeat(200);
      const { output } = await execute(
        backend,
        `mkdir deep; cd deep; i=0; while [ $i -lt 60 ]; do i=$((i+1)); mkdir ${name} ${name}x; : > f; cd -P ./${name} || exit 1; done; chmod 500 .; echo $i`,
      );
      expect(output).toBe("60\n");
      await backend.remove("deep", signal);
      expect(await backend.list(".", signal)).toEqual([]);
      expect(await staged()).toBe("");
      expect(await sh("ls -A")).toBe(".skein\n");
    });

    test("lists a folder of many entries", async () => {
      const { backend, sh } = await opened();
      await sh(
        "mkdir d; cd d; seq 1000 2199 | xargs touch; : > 'new\nline'; : > -rf; : > .hidden; mkdir sub",
      );
      const names = (await backend.list("d", signal)).map(({ path }) =>
        path.slice(path.lastIndexOf("/") + 1),
      );
      const numbers = Array.from({ length: 1200 }, (_, index) => String(1000 + index));
      expect(names).toEqual([...numbers, "-rf", ".hidden", "new\nline", "sub"].sort());
    });

    test("never mixes up what many files hold", async () => {
      const { workdir, runner, sh } = await opened();
      const files = shellFiles(runner, workdir);
      await sh(
        "mkdir d; i=0; while [ $i -lt 450 ]; do i=$((i+1)); printf '%s\\n==> d/f7 <==\\n%s' $i $i > d/f$i; done; : > d/empty; printf x > 'd/new\nline'; mkfifo d/pipe; ln -s f1 d/link; head -c 5000000 /dev/zero > d/large; echo x > d/shut; chmod 000 d/shut",
      );
      const names = Array.from({ length: 450 }, (_, index) => `d/f${index + 1}`);
      const paths = [
        ...names,
        "d/empty",
        "d/gone",
        "d/pipe",
        "d/link",
        "d",
        "d/large",
        "d/shut",
        "d/new\nline",
        "d/f1",
      ];
      const found = new Map<string, string>();
      for await (const { path, bytes } of files.contents(paths, 6_000_000, signal))
        found.set(path, path === "d/large" ? String(bytes.length) : String(bytes));
      expect(found.size).toBe(453);
      for (const [index, name] of names.entries())
        expect(found.get(name)).toBe(`${index + 1}\n==> d/f7 <==\n${index + 1}`);
      expect(found.get("d/empty")).toBe("");
      expect(found.get("d/large")).toBe("5000000");
      expect(found.get("d/new\nline")).toBe("x");
      const small: string[] = [];
      for await (const { path } of files.contents(["d/large", "d/f1"], 4_999_999, signal)) small.push(path);
      expect(small).toEqual(["d/f1"]);
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

    describe("a small disk", () => {
      const mounted = async () => {
        const folder = await newFolder();
        const disk = join(folder, "small");
        await mkdir(disk);
        const options = `size=1m,nr_inodes=40,uid=${USER?.uid ?? 0},gid=${USER?.gid ?? 0}`;
        return {
          disk,
          isMounted: spawnSync("mount", ["-t", "tmpfs", "-o", options, "none", disk]).status === 0,
        };
      };

      test("that is full is said to be, and nothing is half written", async ({ skip }) => {
        const { disk, isMounted } = await mounted();
        if (!isMounted) skip("only root may mount a disk");
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

      test("that is read-only can be read and searched, and is said to be", async ({ skip }) => {
        const { disk, isMounted } = await mounted();
        if (!isMounted) skip("only root may mount a disk");
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
});

test.skipIf(found("dash") === "")("a listing ends at ten thousand, a search at fifty", async () => {
  const { backend, workdir } = await openedWith(["dash"]);
  writeFileSync(join(workdir, "f"), "");
  for (const [folder, count] of [
    ["many", 10_100],
    ["more", 40_500],
  ] as const) {
    mkdirSync(join(workdir, folder));
    for (let index = 0; index < count; index++)
      linkSync(join(workdir, "f"), join(workdir, folder, `${index}`));
  }
  const listed = await backend.list("many", signal);
  expect(new Set(listed.map(({ path }) => path)).size).toBe(10_000);
  expect(listed.every(({ type, size }) => type === "file" && size === 0)).toBe(true);
  expect((await backend.glob("99", ".", signal)).truncated).toBe(true);
  expect(await backend.glob("99", "more", signal)).toEqual({ matches: ["more/99"], truncated: false });
});
