import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { AppError } from "../../../src/agent/core/errors.ts";
import { openPerl, type PerlFiles } from "../../../src/sandbox/shell/perl/client.ts";
import { encodeFrame, type FrameField, type HelperFrame } from "../../../src/sandbox/shell/perl/frames.ts";
import { SandboxLostError } from "../../../src/sandbox/shell/script.ts";
import { readAll, refuses } from "../../support/backend.ts";
import { needing } from "../../support/needing.ts";
import {
  childShell,
  collected,
  hasPerl,
  lost,
  newFolder,
  opened,
  type Puppet,
  played,
  puppet,
} from "../../support/perl.ts";

const { signal } = new AbortController();
afterEach(() => {
  vi.useRealTimers();
});

describe("a hostile helper", () => {
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
  };
  const entry = (name: string) => ["f", "1", "1", name];

  test.each<[string, (frame: HelperFrame, puppet: Puppet) => void]>([
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
  ])("that sends %s is dropped", async (_, onRequest) => {
    const play = puppet({ onRequest });
    const perl = await played(play);
    await lost(perl.list("folder", signal));
    expect(play.isClosed()).toBe(true);
    const reason = await perl.lost;
    expect(reason).toBeInstanceOf(SandboxLostError);
    expect(String(reason.cause)).not.toContain("has not answered");
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
  ])("that answers %s with nonsense is dropped", async (_, fields, ask) => {
    const play = puppet({ onRequest: ({ id }, { answer }) => answer(id, "k", ...fields) });
    const perl = await played(play);
    await lost(ask(perl));
    expect(play.isClosed()).toBe(true);
  });

  test("a failure's name is never used as anything other than a name", async () => {
    const codes = ["<script>", "x".repeat(100_000), "constructor", "__proto__", "", "ENOENT\n"];
    const play = puppet({ onRequest: ({ id }, { answer }) => answer(id, "e", codes.shift() ?? "EIO") });
    const perl = await played(play);
    for (let count = codes.length; count > 0; count--)
      await refuses(() => perl.remove("x", signal), "backend_failed", "(unknown error)");
    await refuses(() => perl.remove("x", signal), "backend_failed", "(EIO)");
    perl.close(new Error("the test is over"));
  });

  test("a silent helper is dropped after twenty seconds, but not while no answer is expected", async () => {
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

  test("gets at most sixty-four requests at once; the others wait in turn", async () => {
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
    expect((await Promise.all(all)).filter((each) => each instanceof SandboxLostError).length).toBe(89);
  });

  test("a cancelled request is reported to the helper, and its late answer is ignored", async () => {
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

  test("can send anything: every caller gets an answer or an error", async () => {
    const random = newRandom(20_010_203);
    const pick = <T>(...choices: T[]): T => choices[random(choices.length)] as T; // The index is below the length.
    const field = () =>
      pick<() => FrameField>(
        () => pick("f", "d", "0", "1", "all", "more", "file", "large", "none", "ENOENT", "OUTSIDE"),
        () => String(random(2 ** 31)),
        () => Buffer.alloc(random(300), random(256)),
        () => "n".repeat(random(5000)),
      )();
    const nonsense = ({ id }: HelperFrame, { answer, say }: Puppet) => {
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
        if (result instanceof Error && !(result instanceof SandboxLostError))
          expect(result).toBeInstanceOf(AppError);
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

needing(hasPerl, "perl on Linux").describe("a start", () => {
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

  test("does not exist without perl, or with a broken one", async () => {
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

  test("ignores the image's settings for other programs", async () => {
    const { perl, backend } = await opened({
      ...{ PERL5OPT: "-Mnonsense", PERL5LIB: "/nowhere", PERL_UNICODE: "SDA", PERLIO: ":utf8" },
      ...{ LC_ALL: "de_DE.UTF-8", ENV: "/nowhere" },
    });
    const bytes = Buffer.from([0xff, 0xc3, 0xa9, 0x0d, 0x0a, 0x00]);
    await perl.write("é", bytes, signal);
    expect((await readAll(backend, "é")).equals(bytes)).toBe(true);
  });

  test("ends if it is cancelled, or if no shell can be opened", async () => {
    const abort = new AbortController();
    const starting = openPerl(puppet({ greets: false }).open, "/workspace", abort.signal);
    abort.abort(new Error("enough"));
    await expect(starting).rejects.toThrow("enough");
    const fails = () => Promise.reject(new AppError("unavailable", "no engine"));
    await expect(openPerl(fails, "/workspace", signal)).rejects.toThrow("no engine");
  });

  test("waits five seconds for a response", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const silent = puppet({ greets: false });
    const starting = openPerl(silent.open, "/workspace", signal);
    await vi.advanceTimersByTimeAsync(5000);
    expect(await starting).toBeUndefined();
    expect(silent.isClosed()).toBe(true);
  });
});

needing(hasPerl, "perl on Linux").describe("a helper", () => {
  test("hundreds of simultaneous operations all get their own answer", async () => {
    const { perl, backend } = await opened();
    const bodies = Array.from({ length: 300 }, (_, index) => `${index}-`.repeat(100 + index * 10));
    await Promise.all(bodies.map((body, index) => perl.write(`f${index}`, Buffer.from(body), signal)));
    const read = await Promise.all(bodies.map((_, index) => readAll(backend, `f${index}`)));
    expect(read.map(String)).toEqual(bodies);
  });

  test("waiting and later calls fail if the helper dies", async () => {
    const { perl, child } = await opened();
    await perl.write("large", Buffer.alloc(400_000), signal);
    const reading = perl.read("large", {}, signal)[Symbol.asyncIterator]();
    await reading.next();
    child.kill("SIGSTOP");
    const waiting = [perl.stat(".", signal), perl.list(".", signal), reading.next()].map(lost);
    child.kill("SIGKILL");
    await Promise.all(waiting);
    expect(await perl.lost).toBeInstanceOf(SandboxLostError);
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
