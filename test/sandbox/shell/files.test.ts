import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AppError } from "../../../src/agent/core/errors.ts";
import { shellFiles } from "../../../src/sandbox/shell/files.ts";
import { entriesIn } from "../../../src/sandbox/shell/prelude.ts";
import { filesContract } from "../../contracts/backend/index.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";
import { found } from "../../support/child-shell.ts";
import { needing } from "../../support/needing.ts";
import { backendOn, describeFiles, from, newFolder, openedWith, USER } from "../../support/shell-files.ts";

const { signal } = new AbortController();

describeFiles((opened) => {
  filesContract(async () => {
    const { backend } = await opened();
    return { backend, close: async () => {} };
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

  test("text is returned unchanged, even if a shell would interpret it", async () => {
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

  test("a name can have any bytes, up to 255", async () => {
    const { backend, sh } = await opened();
    const long = "漢".repeat(85);
    await backend.write(`${long}/${long}`, Buffer.from("x"), signal);
    expect((await backend.stat(`${long}/${long}`, signal)).size).toBe(1);
    await sh(`cd ${long}; : > "$(printf 'a\\377')"; : > "$(printf 'a\\376')"; : > "$(printf '.\\377')"`);
    expect(await backend.list(long, signal)).toHaveLength(4);
    expect((await backend.glob("**", long, signal)).matches).toHaveLength(4);
    expect((await backend.grep("x", long, undefined, signal)).matches).toHaveLength(1);
  });

  test("a path can be as long as the system allows, and is then refused with a readable error", async () => {
    const { backend } = await opened();
    const path = (length: number) => `${"d".repeat(99)}/`.repeat(length / 100 - 1).padEnd(length, "f");
    await backend.write(path(3900), Buffer.from("x"), signal);
    expect(String(await readAll(backend, path(3900)))).toBe("x");
    expect((await backend.glob("f*", ".", signal)).matches).toEqual([`${backend.workdir}/${path(3900)}`]);
    for (const length of [4070, 4090, 4096])
      await backend.write(path(length), Buffer.from("x"), signal).catch((error: AppError) => {
        expect(error.message).toMatch(/too long/);
      });
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
    await sh("mkdir d; cd d; seq 1000 2199 | xargs touch; : > 'new\nline'; : > -rf; : > .hidden; mkdir sub");
    const names = (await backend.list("d", signal)).map(({ path }) => path.slice(path.lastIndexOf("/") + 1));
    const numbers = Array.from({ length: 1200 }, (_, index) => String(1000 + index));
    expect(names).toEqual([...numbers, "-rf", ".hidden", "new\nline", "sub"].sort());
  });

  test("never mixes up the contents of many files", async () => {
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
});

needing(found("dash"), "dash").test(
  "a list ends at ten thousand, and a search at fifty thousand",
  async () => {
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
    expect(await backend.glob("99", "more", signal)).toEqual({
      matches: [`${backend.workdir}/more/99`],
      truncated: false,
    });
  },
);

const mayMount = spawnSync("unshare", ["--mount", "true"]).status === 0;

describeFiles((opened) => {
  test("reports missing permissions", async () => {
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

  test("reports a missing workspace", async () => {
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

    test("that is full causes an error, and nothing is partly written", async () => {
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

    test("that is read-only can be read and searched, and refuses writes", async () => {
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

test("an entry that a shell reports incompletely is ignored", () => {
  const output = Buffer.from("/d\0m:81a4 1 2 ./f/\nm:81a4 3 4 ./cut");
  expect(entriesIn({ fields: [], output, mark: "m" }, "/w").map(({ path }) => path)).toEqual(["/w/d/f"]);
});
