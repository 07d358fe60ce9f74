import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { editing } from "../../../src/backends/edit.ts";
import { searching } from "../../../src/backends/search.ts";
import type { OpenChannel } from "../../../src/backends/shell/channel.ts";
import { encodeFrame, type Field, type Frame, frameReader } from "../../../src/backends/shell/perl/frames.ts";
import { openPerl, type PerlFiles } from "../../../src/backends/shell/perl/open.ts";
import { LaneLost } from "../../../src/backends/shell/runner.ts";
import type { Backend } from "../../../src/core/backend.ts";
import { AppError } from "../../../src/core/errors.ts";
import { filesContract } from "../../contracts/backend/index.ts";
import { execute, readAll, refuses } from "../../support/backend.ts";

const { signal } = new AbortController();
/** Root may do everything, so it is nobody to test with. */
const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {};
const hasPerl = process.platform === "linux" && spawnSync("perl", ["-e", "1"]).status === 0;

const folders: string[] = [];
const helpers: PerlFiles[] = [];
afterAll(async () => {
  for (const helper of helpers) helper.close(new Error("the tests are over"));
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});
afterEach(() => {
  vi.useRealTimers();
});

async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-perl-")));
  folders.push(folder);
  if (USER.uid !== undefined) await chown(folder, USER.uid, USER.gid);
  return folder;
}

/** A shell as a child process. */
function childShell(
  cwd: string,
  environment: Record<string, string> = {},
): { open: OpenChannel; child: () => ChildProcess } {
  let child: ChildProcess | undefined;
  const open: OpenChannel = async (events) => {
    const env = { PATH: "/usr/bin:/bin", ...environment };
    const started = spawn("/bin/sh", [], { cwd, env, stdio: "pipe", ...USER });
    child = started;
    started.stdout.on("data", events.onOutput);
    started.stderr.on("data", events.onErrorOutput);
    for (const stream of [started.stdin, started.stdout, started.stderr]) stream.on("error", () => {});
    started.on("close", () => events.onClose());
    await once(started, "spawn");
    return {
      write: (bytes) =>
        new Promise((resolve, reject) => {
          started.stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
        }),
      pause: () => started.stdout.pause(),
      resume: () => started.stdout.resume(),
      close: () => void [started.stdin, started.stdout, started.stderr].map((stream) => stream.destroy()),
    };
  };
  return {
    open,
    child() {
      if (!child) throw new Error("No shell was opened.");
      return child;
    },
  };
}

interface Opened {
  readonly workdir: string;
  readonly perl: PerlFiles;
  readonly backend: Backend;
  readonly child: ChildProcess;
}

async function opened(environment?: Record<string, string>): Promise<Opened> {
  const workdir = await newFolder();
  const { open, child } = childShell(workdir, environment);
  const perl = await openPerl(open, workdir, signal);
  if (!perl) throw new Error("There is no helper.");
  helpers.push(perl);
  return { workdir, perl, child: child(), backend: backendOf(perl, workdir) };
}

const backendOf = (files: PerlFiles, workdir: string): Backend => ({
  ...{ type: "perl", ...files, ...editing(files), ...searching(files) },
  async *exec(command) {
    const child = spawn("/bin/sh", ["-c", command], { cwd: workdir, ...USER });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => chunks.push(chunk));
    const [exitCode] = await once(child, "close");
    return { output: Buffer.concat(chunks).toString(), omitted: 0, exitCode };
  },
});

async function collected<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

const lost = (attempt: Promise<unknown>) => expect(attempt).rejects.toBeInstanceOf(LaneLost);

const staged = (workdir: string) => readdir(join(workdir, ".skein", "staging"));

describe.skipIf(!hasPerl)("files by perl", () => {
  filesContract(async () => {
    const { backend } = await opened();
    return { backend, close: async () => {} };
  });

  test("a file that is written again keeps its mode", async () => {
    const { workdir, perl } = await opened();
    await perl.write("secret", Buffer.from("one"), signal);
    await chmod(join(workdir, "secret"), 0o640);
    await perl.write("secret", Buffer.from("two"), signal);
    expect((await stat(join(workdir, "secret"))).mode & 0o7777).toBe(0o640);
  });

  test("a file that is being read stays the same whatever takes its place", async () => {
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

  test("nothing is left of a write that ends in the middle", async () => {
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

  test("of more files than are kept open, the one that was left alone longest is closed", async () => {
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

  test("a folder of five thousand is listed, searched and read; of more than ten thousand, so many are listed", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "mkdir many && cd many && seq 10000 14999 | xargs touch && printf hit >> 12345");
    const listed = await perl.list("many", signal);
    expect(listed.map(({ path }) => path.slice(-5))).toEqual(
      Array.from({ length: 5000 }, (_, index) => String(10_000 + index)),
    );
    expect((await perl.files("", new Set(), signal)).matches.length).toBe(5000);
    expect((await backend.grep("h.t", ".", undefined, signal)).matches).toEqual([
      { file: "many/12345", line: 1, text: "hit" },
    ]);
    await execute(backend, "cd many && seq 20000 25000 | xargs touch");
    expect((await perl.list("many", signal)).length).toBe(10_000);
  });

  test("paths may be as long as they can be, and a search is bounded in what it finds of them", async () => {
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

  test("a name need not be text", async () => {
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
      for (let depth = 0; depth < 60; depth++) { fs.mkdirSync("d".repeat(200)); process.chdir("d".repeat(200)); }
      fs.writeFileSync(Buffer.from([0x66, 0xff]), "x");
      fs.chmodSync(".", 0o500);`;
    const dug = await execute(backend, `mkdir deep && cd deep && '${process.execPath}' -e '${digger}'`);
    expect(dug).toMatchObject({ output: "", exitCode: 0 });
    await perl.remove("deep", signal);
    expect(await staged(workdir)).toEqual([]);
    await execute(backend, "mkdir -p .skein/a/b .skein/c && touch .skein/a/b/f && chmod 500 .skein/a/b");
    await perl.remove(".skein", signal);
    expect(await readdir(workdir)).toEqual([]);
  });

  test("says so when a folder cannot be removed where it is", async () => {
    const { workdir, perl } = await opened();
    await writeFile(join(workdir, ".skein"), "not a folder");
    await mkdir(join(workdir, "foreign", "folder"), { recursive: true });
    if (USER.uid !== undefined)
      await refuses(() => perl.remove("foreign", signal), "backend_refused", "permission denied");
    await refuses(() => perl.write("file", Buffer.from("x"), signal), "backend_refused", "`.skein`");
    await perl.remove(".skein", signal);
    expect(await perl.write("file", Buffer.from("x"), signal)).toBe(1);
  });

  test("staging is nobody's business", async () => {
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

  test("a link that is swapped meanwhile leads nowhere else", async () => {
    const { workdir, perl, backend } = await opened();
    await perl.write("inside/passwd", Buffer.from("inside"), signal);
    await execute(backend, "ln -s inside here");
    const swaps = `for (;;) { for ("inside", "/etc") { symlink $_, "new"; rename "new", "here" } }`;
    const swapper = spawn("perl", ["-e", swaps], { cwd: workdir, stdio: "ignore", ...USER });
    const seen = new Set<string>();
    try {
      for (let count = 0; count < 100 || (seen.size < 2 && count < 5000); count++) {
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

  test("contents of any size come whole, each with its path", async () => {
    const { perl } = await opened();
    const sizes = [0, 1, 100_000, 131_071, 131_072, 131_073, 50_000, 300_000, 300_001];
    for (const size of sizes) await perl.write(`f${size}`, Buffer.alloc(size, "x"), signal);
    const paths = sizes.map((size) => `f${size}`);
    const found = await collected(perl.contents(paths, 300_000, signal));
    expect(found.map(({ path, bytes }) => [path, bytes.length])).toEqual(
      sizes.filter((size) => size <= 300_000).map((size) => [`f${size}`, size]),
    );
  });

  test("tells times that no calendar has", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "touch -d @-5 early; touch -d @99999999999999 late");
    expect((await perl.stat("early", signal)).modified_at).toBe("1969-12-31T23:59:55.000Z");
    expect((await perl.stat("late", signal)).modified_at).toMatch(/^(\+|\d)/);
  });

  test("one that takes its time does not keep others waiting", async () => {
    const { perl, backend } = await opened();
    await execute(backend, "mkdir many && cd many && seq 2000 | xargs touch");
    const ended: string[] = [];
    const note = (name: string) => () => ended.push(name);
    await Promise.all([
      perl.files("", new Set(), signal).then(note("search")),
      perl.stat(".", signal).then(note("stat")),
    ]);
    await Promise.all([
      perl.remove("many", signal).then(note("remove")),
      perl.write("file", Buffer.from("x"), signal).then(note("write")),
      perl.list(".", signal).then(note("list")),
    ]);
    expect(ended.slice(0, 2)).toEqual(["stat", "search"]);
    expect(ended.at(-1)).toBe("remove");
  });

  test("what is cancelled throws at once, and leaves nothing open", async () => {
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

  test("a removal that nobody waits for is done all the same", async () => {
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
    await expect.poll(() => staged(workdir), { timeout: 10_000 }).toEqual([]);
  });

  test("hundreds of operations at once all get their own answer", async () => {
    const { perl, backend } = await opened();
    const bodies = Array.from({ length: 300 }, (_, index) => `${index}-`.repeat(100 + index * 10));
    await Promise.all(bodies.map((body, index) => perl.write(`f${index}`, Buffer.from(body), signal)));
    const read = await Promise.all(bodies.map((_, index) => readAll(backend, `f${index}`)));
    expect(read.map(String)).toEqual(bodies);
  });

  test("whoever waits when the helper dies is told, and so is who comes after", async () => {
    const { perl, child } = await opened();
    await perl.write("large", Buffer.alloc(400_000), signal);
    const reading = perl.read("large", {}, signal)[Symbol.asyncIterator]();
    await reading.next();
    child.kill("SIGSTOP");
    const waiting = [perl.stat(".", signal), perl.list(".", signal), reading.next()].map(lost);
    child.kill("SIGKILL");
    await Promise.all(waiting);
    expect(await perl.lost).toBeInstanceOf(LaneLost);
    await lost(perl.stat(".", signal));
    await lost(perl.write("large", Buffer.from("x"), signal));
  });

  test("ends with its channel, and sleeps until then", async () => {
    const { perl, child } = await opened();
    await perl.stat(".", signal);
    const state = async () =>
      /^State:\s+(\S)/m.exec(await readFile(`/proc/${child.pid}/status`, "utf8"))?.[1];
    await expect.poll(state).toBe("S");
    const exited = once(child, "exit");
    perl.close(new Error("idle"));
    await exited;
    expect((await perl.lost).cause).toEqual(new Error("idle"));
  });
});

describe.skipIf(!hasPerl)("a start", () => {
  const openedWith = async (environment: Record<string, string>) => {
    const workdir = await newFolder();
    const perl = await openPerl(childShell(workdir, environment).open, workdir, signal);
    perl?.close(new Error("the test is over"));
    return perl;
  };
  const pathWith = async (script: string) => {
    const folder = await newFolder();
    await writeFile(join(folder, "perl"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return { PATH: `${folder}:/usr/bin:/bin` };
  };

  test("is none without a perl, or with one that does not work", async () => {
    expect(await openedWith({ PATH: await newFolder() })).toBeUndefined();
    for (const script of [
      "exit 3",
      "echo hello; exec cat",
      "printf '\\0\\0\\0\\5hello'; exec cat",
      "exec /nowhere",
    ])
      expect(await openedWith(await pathWith(script))).toBeUndefined();
    expect(await openPerl(childShell("/").open, "/nowhere/at/all", signal)).toBeUndefined();
  });

  test("does not mind what the image has set for other programs", async () => {
    const { perl, backend } = await opened({
      ...{ PERL5OPT: "-Mnonsense", PERL5LIB: "/nowhere", PERL_UNICODE: "SDA", PERLIO: ":utf8" },
      ...{ LC_ALL: "de_DE.UTF-8", ENV: "/nowhere" },
    });
    const bytes = Buffer.from([0xff, 0xc3, 0xa9, 0x0d, 0x0a, 0x00]);
    await perl.write("é", bytes, signal);
    expect((await readAll(backend, "é")).equals(bytes)).toBe(true);
  });

  test("is given up when it is cancelled, or when no shell can be opened", async () => {
    const abort = new AbortController();
    const starting = openPerl(puppet({ greets: false }).open, "/workspace", abort.signal);
    abort.abort(new Error("enough"));
    await expect(starting).rejects.toThrow("enough");
    const fails = () => Promise.reject(new AppError("unavailable", "no engine"));
    await expect(openPerl(fails, "/workspace", signal)).rejects.toThrow("no engine");
  });

  test("waits five seconds for a word", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const silent = puppet({ greets: false });
    const starting = openPerl(silent.open, "/workspace", signal);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await starting).toBeUndefined();
    expect(silent.isClosed()).toBe(true);
  });
});

/** Plays the other end. */
interface Puppet {
  readonly open: OpenChannel;
  /** Requests, as they came. */
  readonly asked: Frame[];
  readonly say: (bytes: Uint8Array) => void;
  readonly answer: (id: number, letter: string, ...fields: Field[]) => void;
  readonly isClosed: () => boolean;
}

function puppet({
  greets = true,
  onRequest = () => {},
}: {
  greets?: boolean;
  onRequest?: (frame: Frame, puppet: Puppet) => void;
} = {}): Puppet {
  let isClosed = false;
  let say = (_: Uint8Array) => {};
  const asked: Frame[] = [];
  const read = frameReader((frame) => {
    asked.push(frame);
    onRequest(frame, it);
  });
  const it: Puppet = {
    async open(events) {
      say = (bytes) => isClosed || events.onOutput(Buffer.from(bytes));
      let isScript = true;
      return {
        async write(bytes) {
          if (isClosed) throw new Error("closed");
          if (!isScript) return read(Buffer.from(bytes));
          isScript = false;
          if (greets) it.answer(0, "h", "skein-files", "1");
        },
        pause() {},
        resume() {},
        close() {
          isClosed = true;
          events.onClose();
        },
      };
    },
    asked,
    say: (bytes) => say(bytes),
    answer: (id, letter, ...fields) => say(encodeFrame(id, letter, fields)),
    isClosed: () => isClosed,
  };
  return it;
}

async function played(play: Puppet): Promise<PerlFiles> {
  const perl = await openPerl(play.open, "/workspace", signal);
  if (!perl) throw new Error("There is no helper.");
  return perl;
}

describe("a stranger at the other end", () => {
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const entry = (name: string) => ["f", "1", "1", name];

  test.each<[string, (frame: Frame, puppet: Puppet) => void]>([
    ["a frame that is too large", (_, { say }) => say(u32(0xffffffff))],
    ["a frame that is too small", (_, { say }) => say(Buffer.concat([u32(1), Buffer.from("x")]))],
    ["text", (_, { say }) => say(Buffer.from("Segmentation fault\n"))],
    ["an answer to nothing", ({ id }, { answer }) => answer(id + 1, "k")],
    ["a second greeting", (_, { answer }) => answer(0, "h", "skein-files", "1")],
    ["a letter that does not exist", ({ id }, { answer }) => answer(id, "?")],
    [
      "a field longer than its frame",
      ({ id }, { say }) => say(Buffer.concat([u32(9), u32(id), Buffer.from("k"), u32(9)])),
    ],
    ["an entry without a name", ({ id }, { answer }) => answer(id, "d", "f", "1", "1")],
    ["an entry of no kind", ({ id }, { answer }) => answer(id, "d", "constructor", "1", "1", "name")],
    ["an entry of no size", ({ id }, { answer }) => answer(id, "d", "f", "NaN", "1", "name")],
    ["too many entries", ({ id }, { answer }) => answer(id, "d", ...Array(10_001).fill(entry("n")).flat())],
    [
      "entries without end",
      ({ id }, { answer, isClosed }) => {
        for (let count = 0; count < 1_000_000 && !isClosed(); count++)
          answer(id, "d", ...entry("n".repeat(100_000)));
      },
    ],
    [
      "progress without end",
      ({ id }, { answer, isClosed }) => {
        for (let count = 0; count < 1_000_000 && !isClosed(); count++) answer(id, "p");
      },
    ],
  ])("who sends %s is left", async (_, onRequest) => {
    const play = puppet({ onRequest });
    const perl = await played(play);
    await lost(perl.list("folder", signal));
    expect(play.isClosed()).toBe(true);
    expect(await perl.lost).toBeInstanceOf(LaneLost);
  });

  test.each<[string, string[], (perl: PerlFiles) => Promise<unknown>]>([
    ["a stat", ["f", "1"], (perl) => perl.stat("x", signal)],
    ["a longer read", ["0", "four"], (perl) => collected(perl.read("x", { length: 3 }, signal))],
    ["an endless read", ["1", ""], (perl) => collected(perl.read("x", {}, signal))],
    ["no contents", [], (perl) => collected(perl.contents(["x"], 9, signal))],
    ["half contents", ["file"], (perl) => collected(perl.contents(["x"], 9, signal))],
    ["more contents", Array(4).fill("file"), (perl) => collected(perl.contents(["x"], 9, signal))],
    ["larger contents", ["file", "0123456789"], (perl) => collected(perl.contents(["x"], 9, signal))],
    ["a search", ["some"], (perl) => perl.files("", new Set(), signal)],
  ])("who answers %s with nonsense is left", async (_, fields, ask) => {
    const play = puppet({ onRequest: ({ id }, { answer }) => answer(id, "k", ...fields) });
    const perl = await played(play);
    await lost(ask(perl));
    expect(play.isClosed()).toBe(true);
  });

  test("no name of a failure becomes anything but a name", async () => {
    const codes = ["<script>", "x".repeat(100_000), "constructor", "__proto__", "", "ENOENT\n"];
    const play = puppet({ onRequest: ({ id }, { answer }) => answer(id, "e", codes.shift() ?? "EIO") });
    const perl = await played(play);
    for (let count = codes.length; count > 0; count--)
      await refuses(() => perl.remove("x", signal), "backend_failed", "(unknown error)");
    await refuses(() => perl.remove("x", signal), "backend_failed", "(EIO)");
    perl.close(new Error("the test is over"));
  });

  test("who keeps silent is left after twenty seconds, but not while there is nothing to say", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const play = puppet();
    const perl = await played(play);
    await vi.advanceTimersByTimeAsync(60_000);
    const waiting = lost(perl.stat("x", signal));
    await vi.advanceTimersByTimeAsync(19_000);
    expect(play.isClosed()).toBe(false);
    play.answer(play.asked[0]?.id ?? 0, "p");
    await vi.advanceTimersByTimeAsync(19_000);
    expect(play.isClosed()).toBe(false);
    await vi.advanceTimersByTimeAsync(1_000);
    await waiting;
    expect(play.isClosed()).toBe(true);
  });

  test("is asked for sixty-four things at once; the others wait in turn", async () => {
    const play = puppet();
    const perl = await played(play);
    const abort = new AbortController();
    const all = Array.from({ length: 100 }, (_, index) =>
      perl.remove(`f${index}`, index === 70 ? abort.signal : signal).then(
        () => index,
        (error: unknown) => error,
      ),
    );
    await expect.poll(() => play.asked.length).toBe(64);
    abort.abort(new Error("enough"));
    expect(await all[70]).toEqual(new Error("enough"));
    expect(play.asked.length).toBe(64);
    for (let count = 0; count < 10; count++) play.answer(play.asked[count]?.id ?? 0, "k");
    expect(await Promise.all(all.slice(0, 10))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await expect
      .poll(() => play.asked.slice(64).map(({ fields }) => String(fields[0])))
      .toEqual([64, 65, 66, 67, 68, 69, 71, 72, 73, 74].map((index) => `f${index}`));
    perl.close(new Error("stopped"));
    expect((await Promise.all(all)).filter((each) => each instanceof LaneLost).length).toBe(89);
  });

  test("what nobody waits for any more is told to it, and its late answer is taken", async () => {
    const play = puppet();
    const perl = await played(play);
    const abort = new AbortController();
    const search = expect(perl.files("", new Set(), abort.signal)).rejects.toThrow("enough");
    await expect.poll(() => play.asked.length).toBe(1);
    abort.abort(new Error("enough"));
    await search;
    await expect.poll(() => play.asked.map(({ letter }) => letter)).toEqual(["f", "x"]);
    const [id = 0, given] = play.asked.map((frame) => frame.id);
    expect(given).toBe(id);
    play.answer(id, "d", "late");
    play.answer(id, "e", "ECANCELED");
    expect(play.isClosed()).toBe(false);
    play.answer(id, "k", "all");
    expect(play.isClosed()).toBe(true);
  });

  test("can say what it will: everybody gets an answer or is told that it is lost", async () => {
    const random = newRandom(20_010_203);
    const pick = <T>(...choices: T[]): T => choices[random(choices.length)] as T; // The index is below the length.
    const field = () =>
      pick<() => Field>(
        () => pick("f", "d", "0", "1", "all", "more", "file", "large", "none", "ENOENT", "OUTSIDE"),
        () => String(random(2 ** 31)),
        () => Buffer.alloc(random(300), random(256)),
        () => "n".repeat(random(5000)),
      )();
    const nonsense = ({ id }: Frame, { answer, say }: Puppet) => {
      for (let count = random(4); count >= 0; count--) {
        const fields = Array.from({ length: random(9) }, field);
        const frame = encodeFrame(
          pick(id, id, id, id, random(99)),
          pick("k", "k", "d", "e", "p", "h"),
          fields,
        );
        if (random(4) === 0) frame[random(frame.length)] = random(256);
        const cut = random(frame.length);
        for (const part of [frame.subarray(0, cut), frame.subarray(cut)]) say(part);
        if (random(3) > 0) answer(id, pick("k", "e"), ...Array.from({ length: random(5) }, field));
      }
    };
    for (let round = 0; round < 300; round++) {
      const perl = await played(puppet({ onRequest: nonsense }));
      const asked = [
        () => perl.stat("x", signal),
        () => perl.list("x", signal),
        () => collected(perl.read("x", { length: 100_000 }, signal)),
        () => perl.write("x", Buffer.alloc(200_000), signal),
        () => perl.files("", new Set(), signal),
        () => collected(perl.contents(["x", "y"], 1000, signal)),
        () => perl.remove("x", signal),
      ].map((ask) => ask().catch((error: unknown) => error));
      perl.close(new Error("the round is over"));
      for (const result of await Promise.all(asked))
        if (result instanceof Error && !(result instanceof LaneLost)) expect(result).toBeInstanceOf(AppError);
    }
  });
});

/** The same numbers for the same seed. */
function newRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
