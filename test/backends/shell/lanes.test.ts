import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import type { Channel, OpenChannel } from "../../../src/backends/shell/channel.ts";
import { runFragment } from "../../../src/backends/shell/fragment.ts";
import { Lane } from "../../../src/backends/shell/lane.ts";
import { Lanes } from "../../../src/backends/shell/lanes.ts";
import { MarkReader } from "../../../src/backends/shell/marks.ts";
import { type Fragment, LaneLost } from "../../../src/backends/shell/runner.ts";
import { Shell } from "../../../src/backends/shell/shell.ts";
import { childShell, SHELLS } from "../../support/child-shell.ts";

const { signal } = new AbortController();
const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-lanes-")));
const lanes: Lane[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const lane of lanes.splice(0)) lane.close(new Error("the test is over"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const dash = childShell({ shell: SHELLS.dash, cwd: folder });

async function opened(open: OpenChannel = dash, prelude = ""): Promise<Lane> {
  const lane = await Lane.open(open, { prelude, signal });
  lanes.push(lane);
  return lane;
}

const run = (lane: Lane, fragment: Fragment | string, limit = signal) =>
  runFragment(lane, typeof fragment === "string" ? { script: fragment } : fragment, { signal: limit });

/** Resolves once the fragment that was just begun has reached its `: > started`. */
const started = (name: string) =>
  expect.poll(() => existsSync(join(folder, name)), { interval: 5, timeout: 5000 }).toBe(true);

describe("a mark", () => {
  const word = "M4rkM4rkM4rkM4rkM4rk22";
  const noise = `a\x1eb\x1e${word}\x1e\x1e${word.slice(0, 9)}\n${word} \x1e`;
  const stream = Buffer.from(
    `${noise}\x1e${word} first 1\n${noise}é\x1e${word} \n\x1e${word} last\n${noise}`,
  );

  function read(pieces: readonly Buffer[]): { output: string; words: string[] } {
    const found = { output: "", words: [] as string[] };
    const reader = new MarkReader(word, {
      onOutput: (bytes) => {
        found.output += bytes.toString("latin1");
      },
      onMark: (words) => found.words.push(words),
    });
    for (const piece of pieces) reader.feed(piece);
    return found;
  }

  const output = Buffer.from(`${noise}${noise}é${noise}`).toString("latin1");
  const expected = { output: output.slice(0, -1), words: ["first 1", "", "last"] };

  test("is found wherever the stream is cut, and nothing else is taken for one", () => {
    for (let at = 0; at <= stream.length; at++)
      for (let to = at; to <= stream.length; to += 29)
        expect(read([stream.subarray(0, at), stream.subarray(at, to), stream.subarray(to)])).toEqual(
          expected,
        );
    expect(read(Array.from(stream, (byte) => Buffer.from([byte])))).toEqual(expected);
  });

  test("holds back nothing but its own beginning", () => {
    expect(read([Buffer.from("one\n")]).output).toBe("one\n");
    expect(read([Buffer.from(`one\x1e${word}`)]).output).toBe("one");
    expect(read([Buffer.from(`one\x1e${word}`), Buffer.from("x")]).output).toBe(`one\x1e${word}x`);
  });

  test("without an end is refused", () => {
    expect(() => read([Buffer.from(`\x1e${word} `), Buffer.alloc(20_000, 65)])).toThrow("without an end");
  });
});

describe.each(Object.entries(SHELLS))("a lane of %s", (_, shell) => {
  const open = childShell({ shell, cwd: folder });
  /** Hands on the shell's output byte by byte. */
  const dripping: OpenChannel = (events, limit) =>
    open({ ...events, onOutput: (bytes) => each(bytes, (byte) => events.onOutput(byte)) }, limit);

  test("answers with words and output, one fragment after the other", async () => {
    const lane = await opened(open, "greet() { printf 'hello %s' \"$1\"; }");
    expect(await run(lane, "greet you; r='0 12 é'")).toMatchObject({
      fields: ["0", "12", "é"],
      output: Buffer.from("hello you"),
    });
    const { output, mark } = await run(lane, 'printf "$N"; echo lost >&2; cat');
    expect(String(output)).toBe(mark);
    expect(await run(lane, "cd /; nowhere; r=$?")).toMatchObject({
      fields: ["127"],
      output: Buffer.alloc(0),
    });
  });

  test("gives back every byte", async () => {
    const lane = await opened(dripping);
    const bytes = Buffer.concat([randomBytes(20_000), Buffer.from(Array.from({ length: 256 }, (_, i) => i))]);
    const { output } = await run(lane, { script: `head -c ${bytes.length}`, input: bytes });
    expect(output.equals(bytes)).toBe(true);
  });

  test.each([0, 1, 8191, 65_536, 65_537, 1_048_577])("hands %i bytes of input on", async (size) => {
    const lane = await opened(open);
    const input = randomBytes(size);
    const { output } = await run(lane, { script: `head -c ${size}`, input });
    expect(output.equals(input)).toBe(true);
    expect(String((await run(lane, "echo next")).output)).toBe("next\n");
  });

  /** As input it would do harm if it were read as script. */
  const hostile = Buffer.from(`\n: > ${folder}/harm\nexit\n}\n`.repeat(20_000));
  test.each([
    ["none", "r=13"],
    ["none, and says that all is well", ":"],
    ["half", `head -c ${hostile.length >> 1} >/dev/null; r=28`],
    ["one byte, and says that all is well", "head -c 1"],
    ["a line", "read -r line; r=1"],
    ["all but what has no line end", `head -c ${hostile.length - 1} >/dev/null; r=1`],
    ["by a tool that is missing", "no-such-head -c 9 || r=127"],
    ["by one that reads ahead", "sed -n 1q; r=1"],
  ])("never takes input for script when a fragment reads %s", async (_, script) => {
    const lane = await opened(open);
    await run(lane, { script, input: hostile });
    expect(String((await run(lane, "echo next")).output)).toBe("next\n");
    expect(existsSync(join(folder, "harm"))).toBe(false);
  });

  test("never takes input for script where there is no tool at all", async () => {
    const [file] = shell;
    const lane = await opened(
      childShell({ shell: [`/bin/${file}`, ...shell.slice(1)], cwd: folder, path: "/nowhere" }),
    );
    // Busybox brings its own.
    const { fields } = await run(lane, { script: "head -c 9 >/dev/null || r=$?", input: hostile });
    expect(fields[0]).toBe(file === "busybox" ? "0" : "127");
    expect(String((await run(lane, "echo next")).output)).toBe("next\n");
    expect(existsSync(join(folder, "harm"))).toBe(false);
  });

  test("is lost when its shell ends, in the middle or before", async () => {
    const lane = await opened(open);
    await expect(run(lane, "kill -s KILL $$")).rejects.toThrow(LaneLost);
    await expect(run(lane, ":")).rejects.toThrow(LaneLost);
    const other = await opened(open);
    await expect(run(other, "exit 3")).rejects.toThrow(LaneLost);
    await expect(opened(open, "exit 3")).rejects.toThrow(LaneLost);
    await expect(opened(open, "if then")).rejects.toThrow(LaneLost);
  });
});

describe("a lane", () => {
  test("answers who gives up at once, and is free when the fragment has ended", async () => {
    const lane = await opened();
    const abort = new AbortController();
    const waiting = run(lane, ": > waits; while [ ! -e go ]; do sleep 0.01; done; echo late", abort.signal);
    await started("waits");
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(lane.isIdle).toBe(false);
    await run(await opened(), ": > go");
    await lane.free();
    expect(lane.isIdle).toBe(true);
    expect(String((await run(lane, "echo next")).output)).toBe("next\n");
  });

  test("takes all the input of who has given up", async () => {
    const lane = await opened();
    const abort = new AbortController();
    const input = randomBytes(3_000_000);
    const waiting = run(lane, { script: `: > takes; head -c ${input.length} > taken`, input }, abort.signal);
    await started("takes");
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await lane.free();
    expect(String((await run(lane, "wc -c < taken")).output).trim()).toBe("3000000");
  });

  test("begins nothing for who has given up before", async () => {
    const lane = await opened();
    await expect(run(lane, ": > never", AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
    await run(lane, ":");
    expect(existsSync(join(folder, "never"))).toBe(false);
  });

  test("refuses more output than was asked for, and is not kept busy with it", async () => {
    const lane = await opened();
    expect((await run(lane, { script: "printf 12345", maxBytes: 5 })).output.length).toBe(5);
    await expect(run(lane, { script: "yes", maxBytes: 100_000 })).rejects.toMatchObject({
      code: "payload_too_large",
    });
    expect(lane.isClosed).toBe(true);
  });

  test("is asked about when it keeps silent, and given up when it does so for long", async () => {
    const lane = await opened();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const onSilence = vi.fn();
    const waiting = runFragment(
      lane,
      { script: "read -r line", input: Buffer.alloc(0) },
      { signal, onSilence },
    );
    vi.advanceTimersByTime(1499);
    expect(onSilence).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onSilence).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(18_499);
    expect(lane.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    await expect(waiting).rejects.toThrow("20 s");
    expect(lane.isClosed).toBe(true);
  });

  test("is closed when somebody else writes where its shell writes", async () => {
    const lane = await opened();
    const { output } = await run(lane, "echo $$");
    const other = await opened();
    await run(other, `echo junk > /proc/${String(output).trim()}/fd/1`).catch(() => {});
    await run(other, `kill -s KILL ${String(output).trim()}`);
    await lane.closed;
  });

  test("that never answers is not waited for", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const silent = silentChannel();
    const opening = Lane.open(silent.open, { signal });
    await nextTurn();
    vi.advanceTimersByTime(8000);
    await expect(opening).rejects.toThrow(LaneLost);
    expect(silent.closed()).toBe(1);
  });

  test("that is opened too late is closed", async () => {
    const abort = new AbortController();
    const late = Promise.withResolvers<void>();
    const silent = silentChannel();
    const opening = Lane.open(
      async (events, limit) => {
        await late.promise;
        return silent.open(events, limit);
      },
      { signal: abort.signal },
    );
    abort.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
    late.resolve();
    await expect.poll(silent.closed).toBe(1);
  });
});

describe("the lanes of a sandbox", () => {
  /** Opens as many as are asked for, and tells how many. */
  function counting(limit: number, open = dash) {
    let count = 0;
    const pool = new Lanes({
      limit,
      async open(limit) {
        count++;
        const lane = await Lane.open(open, { signal: limit });
        lanes.push(lane);
        return lane;
      },
    });
    return { pool, count: () => count };
  }

  test("are opened when they are needed, and used again", async () => {
    const { pool, count } = counting(2);
    for (let turn = 0; turn < 5; turn++) pool.give(await pool.take(signal));
    expect(count()).toBe(1);
    const [one, two] = await Promise.all([pool.take(signal), pool.take(signal)]);
    expect(one).not.toBe(two);
    expect(count()).toBe(2);
    pool.close(new Error("the end"));
  });

  test("come to those who wait in their order, and to the urgent one first", async () => {
    const { pool, count } = counting(1);
    const lane = await pool.take(signal);
    const order: string[] = [];
    const wait = async (name: string, taking: Promise<Lane>) => {
      const taken = await taking;
      order.push(name);
      pool.give(taken);
    };
    const abort = new AbortController();
    const waiting = [wait("one", pool.take(signal)), wait("two", pool.take(signal))];
    const gone = pool.take(abort.signal);
    abort.abort(new Error("enough"));
    await expect(gone).rejects.toThrow("enough");
    const extra = await pool.takeFirst(signal);
    expect(count()).toBe(2);
    waiting.push(wait("urgent", pool.takeFirst(signal)), wait("urgent too", pool.takeFirst(signal)));
    pool.give(lane);
    await Promise.all(waiting);
    expect(order).toEqual(["urgent", "urgent too", "one", "two"]);
    pool.give(extra);
    expect([lane.isClosed, extra.isClosed].sort()).toEqual([false, true]);
    pool.close(new Error("the end"));
  });

  test("are waited for by 64 at most", async () => {
    const { pool } = counting(1);
    const lane = await pool.take(signal);
    const waiting = Array.from({ length: 64 }, () => pool.take(signal).then((taken) => pool.give(taken)));
    await expect(pool.take(signal)).rejects.toMatchObject({ code: "unavailable" });
    pool.give(lane);
    await Promise.all(waiting);
    pool.give(await pool.take(signal));
    pool.close(new Error("the end"));
  });

  test("are replaced when they are lost, also while somebody waits", async () => {
    const { pool, count } = counting(1);
    const lane = await pool.take(signal);
    const waiting = pool.take(signal);
    await expect(run(lane, "kill -s KILL $$")).rejects.toThrow(LaneLost);
    pool.give(lane);
    pool.give(await waiting);
    expect(count()).toBe(2);
    const idle = await pool.take(signal);
    pool.give(idle);
    idle.close(new LaneLost("gone"));
    expect(await pool.take(signal)).not.toBe(idle);
    pool.close(new Error("the end"));
  });

  test("that cannot be opened leave nobody waiting", async () => {
    const failing = Promise.withResolvers<never>();
    const { pool, count } = counting(2, () => failing.promise);
    const waiting = Array.from({ length: 10 }, () => pool.take(signal));
    failing.reject(new Error("no engine"));
    for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe("rejected");
    expect(count()).toBeLessThanOrEqual(4);
    await expect(pool.take(signal)).rejects.toThrow("no engine");
  });

  test("that cannot be opened do not spoil those that can", async () => {
    let opening = 0;
    const { pool } = counting(2, (events, limit) => {
      if (++opening === 2) throw new Error("no room");
      return dash(events, limit);
    });
    const waiting = Array.from({ length: 10 }, () => pool.take(signal).then((lane) => pool.give(lane)));
    await Promise.all(waiting);
    pool.close(new Error("the end"));
  });

  test("are not given back before they are free", async () => {
    const { pool } = counting(1);
    const lane = await pool.take(signal);
    const abort = new AbortController();
    const running = run(lane, ": > busy; while [ ! -e free ]; do sleep 0.01; done", abort.signal);
    await started("busy");
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    pool.give(lane);
    const waiting = pool.take(signal);
    await run(await opened(), ": > free");
    expect(await waiting).toBe(lane);
    expect(lane.isIdle).toBe(true);
    pool.close(new Error("the end"));
  });

  test("are closed when nobody needs them for five minutes", async () => {
    const { pool } = counting(1);
    const lane = await pool.take(signal);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    pool.give(lane);
    vi.advanceTimersByTime(5 * 60_000 - 1);
    expect(lane.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(lane.isClosed).toBe(true);
  });

  test("fail all who wait and all who work when they are closed", async () => {
    const { pool } = counting(1);
    const lane = await pool.take(signal);
    const working = run(lane, `while [ -d ${folder} ]; do sleep 0.1; done`);
    const waiting = pool.take(signal);
    pool.close(new Error("the end"));
    await expect(working).rejects.toThrow("the end");
    await expect(waiting).rejects.toThrow("the end");
    await expect(pool.take(signal)).rejects.toThrow("the end");
  });
});

describe("a shell", () => {
  const openedShell = (open = dash, onSilence = () => {}) =>
    new Shell(open, { workdir: folder, prelude: 'half() { r="0 $(($1 / 2))"; }', onSilence });

  test("runs many fragments at once, each with its own answer", async () => {
    const shell = openedShell();
    await shell.prewarm(signal);
    expect(shell.isBusy).toBe(false);
    const replies = Array.from({ length: 60 }, (_, index) =>
      shell.runOnce({ script: `half ${index * 2}; echo ${index}` }, signal),
    );
    expect(shell.isBusy).toBe(true);
    (await Promise.all(replies)).forEach(({ fields, output }, index) => {
      expect([fields, String(output)]).toEqual([["0", `${index}`], `${index}\n`]);
    });
    expect(shell.isBusy).toBe(false);
    shell.close(new Error("the end"));
    await expect(shell.runOnce({ script: ":" }, signal)).rejects.toThrow("the end");
  });

  test("survives whatever happens to its lanes", async () => {
    const shell = openedShell();
    for (let round = 0; round < 20; round++) {
      const replies = [":", "exit", "kill -s KILL $$", ":", "if then"].map((script) =>
        shell.runOnce({ script }, signal),
      );
      const settled = await Promise.allSettled(replies);
      for (const reply of settled)
        if (reply.status === "rejected") expect(reply.reason).toBeInstanceOf(LaneLost);
    }
    const last = () => shell.runOnce({ script: "echo alive" }, signal).catch(() => undefined);
    await expect.poll(async () => String((await last())?.output)).toBe("alive\n");
    shell.close(new Error("the end"));
  });
});

function each(bytes: Buffer, hand: (byte: Buffer) => void): void {
  for (let at = 0; at < bytes.length; at++) hand(bytes.subarray(at, at + 1));
}

/** A channel on which nothing ever comes. */
function silentChannel() {
  let closed = 0;
  const channel: Channel = {
    write: async () => {},
    pause() {},
    resume() {},
    close() {
      closed++;
    },
  };
  const open: OpenChannel = async () => channel;
  return { open, closed: () => closed };
}
