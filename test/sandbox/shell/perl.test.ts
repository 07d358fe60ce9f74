import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { AppError } from "../../../src/agent/core/errors.ts";
import { filesContract } from "../../contracts/backend/index.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import { needing } from "../../support/needing.ts";
import { collected, hasPerl, lost, opened, staged, USER } from "../../support/perl.ts";

const { signal } = new AbortController();

needing(hasPerl, "perl on Linux").describe("files by perl", () => {
  filesContract(async () => {
    const { backend } = await opened();
    return { backend, close: async () => {} };
  });

  test("a file that is overwritten keeps its mode", async () => {
    const { workdir, perl } = await opened();
    await perl.write("secret", Buffer.from("one"), signal);
    await chmod(join(workdir, "secret"), 0o640);
    await perl.write("secret", Buffer.from("two"), signal);
    expect((await stat(join(workdir, "secret"))).mode & 0o7777).toBe(0o640);
  });

  test("a file that is being read stays the same if it is replaced", async () => {
    const { perl } = await opened();
    const before = Buffer.alloc(1_000_000, "before");
    await perl.write("file", before, signal);
    const chunks: Uint8Array[] = [];
    for await (const chunk of perl.read("file", {}, signal)) {
      if (chunks.push(chunk) === 1) await perl.write("file", Buffer.alloc(1_000_000, "after"), signal);
      if (chunks.length === 2) await perl.remove("file", signal);
    }
    expect(Buffer.concat(chunks).equals(before)).toBe(true);
  });

  test("an interrupted write leaves nothing behind", async () => {
    const { workdir, perl, child } = await opened();
    const abort = new AbortController();
    async function* source() {
      yield Buffer.alloc(300_000);
      expect((await staged(workdir)).length).toBe(1);
      abort.abort(new Error("enough"));
      yield Buffer.alloc(300_000);
    }
    await expect(perl.write("file", source(), abort.signal)).rejects.toThrow("enough");
    await refuses(() => perl.stat("file", signal), "not_found", "`file`");
    expect(await staged(workdir)).toEqual([]);

    async function* closing() {
      yield Buffer.alloc(300_000);
      perl.close(new Error("the sandbox is stopped"));
      yield Buffer.alloc(300_000);
    }
    const exited = once(child, "exit");
    await lost(perl.write("file", closing(), signal));
    await exited;
    expect(await staged(workdir)).toEqual([]);
  });

  test("above the number of files that are kept open, the least recently used one is closed", async () => {
    const { perl } = await opened();
    await perl.write("large", Buffer.alloc(400_000, 97), signal);
    const reads = Array.from({ length: 66 }, () => perl.read("large", {}, signal)[Symbol.asyncIterator]());
    for (const read of reads) expect((await read.next()).done).toBe(false);
    const results = await Promise.allSettled(reads.map((read) => read.next()));
    expect(results.map(({ status }) => status)).toEqual([
      ...["rejected", "rejected"],
      ...Array(64).fill("fulfilled"),
    ]);
    expect(results[0]).toMatchObject({
      reason: { code: "backend_failed", message: expect.stringContaining("`large`") },
    });
  });

  test("a folder of five thousand can be listed, searched and read; lists end at ten thousand", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "mkdir many && cd many && seq 10000 14999 | xargs touch && printf hit >> 12345");
    const listed = await perl.list("many", signal);
    expect(listed.map(({ path }) => path.slice(-5))).toEqual(
      Array.from({ length: 5000 }, (_, index) => String(10_000 + index)),
    );
    expect((await perl.files("", new Set(), signal)).matches.length).toBe(5000);
    expect((await backend.grep("h.t", ".", undefined, signal)).matches).toEqual([
      { file: `${backend.workdir}/many/12345`, line: 1, text: "hit" },
    ]);
    await execute(backend, "cd many && seq 20000 25000 | xargs touch");
    expect((await perl.list("many", signal)).length).toBe(10_000);
  });

  test("paths can have the maximum length, and a search limits the number that it returns", async () => {
    const { perl, backend } = await opened();
    const folder = Array(15).fill("d".repeat(250)).join("/");
    await execute(backend, `mkdir -p ${folder} && cd ${folder} && seq 300 | xargs touch`);
    const some = await perl.files("", new Set(), signal);
    expect(some.matches.length).toBe(300);
    expect(some.truncated).toBe(false);
    const contents = perl.contents(some.matches, 10, signal);
    expect((await collected(contents)).length).toBe(300);
    await execute(backend, `cd ${folder} && seq 301 2500 | xargs touch`);
    const many = await perl.files("", new Set(), signal);
    expect(many.matches.length).toBeLessThan(2500);
    expect(many.truncated).toBe(true);
  });

  test("a name does not have to be text", async () => {
    const { perl, backend } = await opened();
    await execute(
      backend,
      String.raw`mkdir odd && cd odd && for n in 'f\377' '\300\257' 'a\001b' '\033[31m'; do touch "$(printf "$n")"; done`,
    );
    const names = (await perl.list("odd", signal)).map(({ path }) =>
      path.slice(`${perl.workdir}/odd/`.length),
    );
    expect(names).toEqual(["\u001b[31m", "a\u0001b", "f\ufffd", "\ufffd\ufffd"]);
    const { matches } = await perl.files("odd", new Set(), signal);
    expect(matches.length).toBe(4);
    expect((await collected(perl.contents(matches, 10, signal))).length).toBe(2);
    await perl.remove("odd", signal);
    expect(await perl.list(".", signal)).toEqual([]);
  });

  test("removes a tree of any depth and of any modes, and staging itself", async () => {
    const { workdir, perl, backend } = await opened();
    const digger = `
      for (1 .. 60) { mkdir "d" x 200 or die $!; chdir "d" x 200 or die $!; }
      open my $file, ">", "f\\xff" or die $!;
      chmod 0500, "." or die $!;`;
    const dug = await execute(backend, `mkdir deep && cd deep && perl -e '${digger}'`);
    expect(dug).toMatchObject({ output: "", exitCode: 0 });
    await perl.remove("deep", signal);
    expect(await staged(workdir)).toEqual([]);
    await execute(backend, "mkdir -p .skein/a/b .skein/c && touch .skein/a/b/f && chmod 500 .skein/a/b");
    await perl.remove(".skein", signal);
    expect(await readdir(workdir)).toEqual([]);
  });

  test("reports a folder that cannot be removed", async () => {
    const { workdir, perl } = await opened();
    await writeFile(join(workdir, ".skein"), "not a folder");
    await mkdir(join(workdir, "foreign", "folder"), { recursive: true });
    if (USER.uid !== undefined)
      await refuses(() => perl.remove("foreign", signal), "backend_refused", "permission denied");
    await refuses(() => perl.write("file", Buffer.from("x"), signal), "backend_refused", "`.skein`");
    await perl.remove(".skein", signal);
    expect(await perl.write("file", Buffer.from("x"), signal)).toBe(1);
  });

  test("staging is hidden", async () => {
    const { perl } = await opened();
    await perl.write("file", Buffer.from("x"), signal);
    expect((await perl.list(".", signal)).map(({ path }) => path)).toEqual([`${perl.workdir}/file`]);
    await refuses(
      () => perl.write(".skein/staging/x", Buffer.from(""), signal),
      "backend_refused",
      "staging",
    );
    await refuses(() => perl.remove(".skein/staging", signal), "backend_refused", "staging");
  });

  test("waits for no pipe and no device, and reads no hole to its end", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "mkfifo pipe; truncate -s 1T hole; ln -s /dev/zero zero; ln -s pipe link");
    for (const path of ["pipe", "link"])
      await refuses(() => readAll(backend, path), "invalid_request", "pipe");
    await refuses(() => readAll(backend, "zero"), "backend_refused", "link");
    expect((await readAll(backend, "hole", { offset: 2 ** 39, length: 10 })).length).toBe(10);
    const contents = perl.contents(["pipe", "link", "zero", "hole", "gone"], 1_000_000, signal);
    expect(await collected(contents)).toEqual([]);
    const hole = await perl.stat("hole", signal);
    expect(hole.size).toBe(2 ** 40);
  });

  test("files with no byte and with one are read completely, and so is a range of one byte", async () => {
    const { perl, backend } = await opened();
    for (const text of ["", "x"]) {
      await perl.write("file", Buffer.from(text), signal);
      expect(String(await readAll(backend, "file"))).toBe(text);
    }
    await perl.write("file", Buffer.from("xyz"), signal);
    expect(String(await readAll(backend, "file", { offset: 1, length: 1 }))).toBe("y");
  });

  test("a link that is swapped during an operation leads nowhere else", async () => {
    const { workdir, perl, backend } = await opened();
    await perl.write("inside/passwd", Buffer.from("inside"), signal);
    await execute(backend, "ln -s inside here");
    const swaps = `for (;;) { for ("inside", "/etc") { symlink $_, "new"; rename "new", "here" } }`;
    const swapper = spawn("perl", ["-e", swaps], { cwd: workdir, stdio: "ignore", ...USER });
    const seen = new Set<string>();
    try {
      for (let count = 0; count < 100 || (seen.size < 2 && count < 20_000); count++) {
        const text = readAll(backend, "here/passwd").then(String);
        seen.add(await text.catch((error: AppError) => error.code));
        await perl.write(`here/written/${count}`, Buffer.from("x"), signal).catch(() => {});
        await perl.remove("here/written", signal).catch(() => {});
      }
    } finally {
      swapper.kill("SIGKILL");
    }
    expect([...seen].sort()).toEqual(["backend_refused", "inside"]);
  });

  test("contents of any size are complete, each with its path", async () => {
    const { perl } = await opened();
    const sizes = [0, 1, 100_000, 131_071, 131_072, 131_073, 50_000, 300_000, 300_001];
    for (const size of sizes) await perl.write(`f${size}`, Buffer.alloc(size, "x"), signal);
    const paths = sizes.map((size) => `f${size}`);
    const found = await collected(perl.contents(paths, 300_000, signal));
    expect(found.map(({ path, bytes }) => [path, bytes.length])).toEqual(
      sizes.filter((size) => size <= 300_000).map((size) => [`f${size}`, size]),
    );
  });

  test("reports times outside of any calendar", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "touch -d @-5 early; touch -d @99999999999999 late");
    expect((await perl.stat("early", signal)).modified_at).toBe("1969-12-31T23:59:55.000Z");
    expect((await perl.stat("late", signal)).modified_at).toMatch(/^(\+|\d)/);
  });

  test("a slow operation does not delay others", async () => {
    const { perl, backend, child } = await opened();
    await execute(backend, "mkdir many && cd many && seq 2000 | xargs touch");
    const ended: string[] = [];
    const note = (name: string) => () => ended.push(name);
    /** Asks for all of it before the helper begins with any. */
    const atOnce = async (ask: () => Promise<unknown>[]) => {
      child.kill("SIGSTOP");
      try {
        const asked = Promise.all(ask());
        await nextTurn();
        child.kill("SIGCONT");
        await asked;
      } finally {
        child.kill("SIGCONT");
      }
    };
    await atOnce(() => [
      perl.files("", new Set(), signal).then(note("search")),
      perl.stat(".", signal).then(note("stat")),
    ]);
    await atOnce(() => [
      perl.remove("many", signal).then(note("remove")),
      perl.write("file", Buffer.from("x"), signal).then(note("write")),
      perl.list(".", signal).then(note("list")),
    ]);
    expect(ended.slice(0, 2)).toEqual(["stat", "search"]);
    expect(ended.at(-1)).toBe("remove");
  });

  test("a cancelled operation throws immediately, and leaves nothing open", async () => {
    const { perl, backend, child } = await opened();
    await execute(
      backend,
      "mkdir many && cd many && seq 2000 | xargs touch; head -c 1000000 /dev/zero > large",
    );
    const openFiles = async () => (await readdir(`/proc/${child.pid}/fd`)).length;
    await perl.stat(".", signal);
    const before = await openFiles();
    for (let round = 0; round < 100; round++) {
      const abort = new AbortController();
      const enough = expect(
        Promise.race([
          perl.files("", new Set(), abort.signal),
          perl.list("many", abort.signal),
          perl.read("many/large", {}, abort.signal)[Symbol.asyncIterator]().next(),
          perl.write("other", Buffer.alloc(1_000_000), abort.signal),
        ]),
      ).rejects.toThrow("enough");
      abort.abort(new Error("enough"));
      await enough;
      for await (const _ of perl.read("many/large", {}, signal)) break;
    }
    await expect.poll(openFiles).toBe(before);
    expect((await perl.list("many", signal)).length).toBe(2001);
  });

  test("a cancelled removal is completed", async () => {
    const { workdir, perl, backend, child } = await opened();
    await execute(backend, "mkdir many && cd many && seq 2000 | xargs touch");
    const abort = new AbortController();
    child.kill("SIGSTOP");
    const removal = expect(perl.remove("many", abort.signal)).rejects.toThrow("enough");
    // It is asked for before it is given up.
    await nextTurn();
    abort.abort(new Error("enough"));
    await removal;
    child.kill("SIGCONT");
    await refuses(() => perl.stat("many", signal), "not_found", "many");
    await expect.poll(() => staged(workdir)).toEqual([]);
  });
});
