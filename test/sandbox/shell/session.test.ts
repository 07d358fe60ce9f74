import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { runScript, SandboxLostError } from "../../../src/sandbox/shell/script.ts";
import {
  type Channel,
  type OpenChannel,
  SentinelReader,
  ShellSession,
} from "../../../src/sandbox/shell/session.ts";
import { childShell, describeShells } from "../../support/child-shell.ts";
import { folder, opened, run, started } from "../../support/sessions.ts";

const { signal } = new AbortController();

afterEach(() => {
  vi.useRealTimers();
});

describeShells("a session of", (shell) => {
  const open = childShell({ shell, cwd: folder });
  /** Hands on the shell's output byte by byte. */
  const dripping: OpenChannel = (events, limit) =>
    open({ ...events, onOutput: (bytes) => each(bytes, (byte) => events.onOutput(byte)) }, limit);

  test("returns status and output, one script after another", async () => {
    const session = await opened(open, "greet() { printf 'hello %s' \"$1\"; }");
    expect(await run(session, "greet you; r='0 12 é'")).toMatchObject({
      fields: ["0", "12", "é"],
      output: Buffer.from("hello you"),
    });
    const { output, mark } = await run(session, 'printf "$N"; echo lost >&2; cat');
    expect(String(output)).toBe(mark);
    expect(await run(session, "cd /; nowhere; r=$?")).toMatchObject({
      fields: ["127"],
      output: Buffer.alloc(0),
    });
  });

  test("returns every byte", async () => {
    const session = await opened(dripping);
    const bytes = Buffer.concat([randomBytes(20_000), Buffer.from(Array.from({ length: 256 }, (_, i) => i))]);
    const { output } = await run(session, { script: `head -c ${bytes.length}`, input: bytes });
    expect(output.equals(bytes)).toBe(true);
  });

  test.each([0, 1, 8191, 65_536, 65_537, 1_048_577])("passes on %i bytes of input", async (size) => {
    const session = await opened(open);
    const input = randomBytes(size);
    const { output } = await run(session, { script: `head -c ${size}`, input });
    expect(output.equals(input)).toBe(true);
    expect(String((await run(session, "echo next")).output)).toBe("next\n");
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
  ])("never takes input for a script if a script reads %s", async (_, script) => {
    const session = await opened(open);
    await run(session, { script, input: hostile });
    expect(String((await run(session, "echo next")).output)).toBe("next\n");
    expect(existsSync(join(folder, "harm"))).toBe(false);
  });

  test("never takes input for a script if there is no tool at all", async () => {
    const [file] = shell;
    const session = await opened(
      childShell({ shell: [`/bin/${file}`, ...shell.slice(1)], cwd: folder, path: "/nowhere" }),
    );
    // Some builds of busybox bring their own.
    const { fields } = await run(session, { script: "head -c 9 >/dev/null || r=$?", input: hostile });
    expect(file === "busybox" ? ["0", "127"] : ["127"]).toContain(fields[0]);
    expect(String((await run(session, "echo next")).output)).toBe("next\n");
    expect(existsSync(join(folder, "harm"))).toBe(false);
  });

  test("is lost if its shell ends, during a script or before", async () => {
    const session = await opened(open);
    await expect(run(session, "kill -s KILL $$")).rejects.toThrow(SandboxLostError);
    await expect(run(session, ":")).rejects.toThrow(SandboxLostError);
    const other = await opened(open);
    await expect(run(other, "exit 3")).rejects.toThrow(SandboxLostError);
    await expect(opened(open, "exit 3")).rejects.toThrow(SandboxLostError);
    await expect(opened(open, "if then")).rejects.toThrow(SandboxLostError);
  });
});

describe("a session", () => {
  test("rejects an aborted call immediately, and is free once the script has ended", async () => {
    const session = await opened();
    const abort = new AbortController();
    const waiting = run(
      session,
      ": > waits; while [ ! -e go ]; do sleep 0.01; done; echo late",
      abort.signal,
    );
    await started("waits");
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(session.isIdle).toBe(false);
    await run(await opened(), ": > go");
    await session.free();
    expect(session.isIdle).toBe(true);
    expect(String((await run(session, "echo next")).output)).toBe("next\n");
  });

  test("reads all the input of an aborted call", async () => {
    const session = await opened();
    const abort = new AbortController();
    const input = randomBytes(3_000_000);
    const waiting = run(
      session,
      { script: `: > takes; head -c ${input.length} > taken`, input },
      abort.signal,
    );
    await started("takes");
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await session.free();
    expect(String((await run(session, "wc -c < taken")).output).trim()).toBe("3000000");
  });

  test("starts nothing for an aborted signal", async () => {
    const session = await opened();
    await expect(run(session, ": > never", AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
    await run(session, ":");
    expect(existsSync(join(folder, "never"))).toBe(false);
  });

  test("refuses more output than requested, and is not kept busy with it", async () => {
    const session = await opened();
    expect((await run(session, { script: "printf 12345", maxBytes: 5 })).output.length).toBe(5);
    await expect(run(session, { script: "yes", maxBytes: 100_000 })).rejects.toMatchObject({
      code: "payload_too_large",
    });
    expect(session.isClosed).toBe(true);
  });

  test("reports silence after 1.5 s, and is closed after 20 s", async () => {
    const session = await opened();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const onSilence = vi.fn();
    const waiting = runScript(
      session,
      { script: "read -r line", input: Buffer.alloc(0) },
      { signal, onSilence },
    );
    vi.advanceTimersByTime(1499);
    expect(onSilence).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(onSilence).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(18_499);
    expect(session.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    await expect(waiting).rejects.toThrow("20 s");
    expect(session.isClosed).toBe(true);
  });

  test("is closed if another process writes where its shell writes", async () => {
    const session = await opened();
    const { output } = await run(session, "echo $$");
    const other = await opened();
    await run(other, `echo junk > /proc/${String(output).trim()}/fd/1`).catch(() => {});
    await run(other, `kill -s KILL ${String(output).trim()}`);
    await session.closed;
  });

  test("that never answers is not waited for", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const silent = silentChannel();
    const opening = ShellSession.open(silent.open, { signal });
    await nextTurn();
    vi.advanceTimersByTime(8000);
    await expect(opening).rejects.toThrow(SandboxLostError);
    expect(silent.closed()).toBe(1);
  });

  test("that is opened too late is closed", async () => {
    const abort = new AbortController();
    const late = Promise.withResolvers<void>();
    const silent = silentChannel();
    const opening = ShellSession.open(
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

describe("a sentinel", () => {
  const word = "M4rkM4rkM4rkM4rkM4rk22";
  const noise = `a\x1eb\x1e${word}\x1e\x1e${word.slice(0, 9)}\n${word} \x1e`;
  const stream = Buffer.from(
    `${noise}\x1e${word} first 1\n${noise}é\x1e${word} \n\x1e${word} last\n${noise}`,
  );

  function read(pieces: readonly Buffer[]): { output: string; words: string[] } {
    const found = { output: "", words: [] as string[] };
    const reader = new SentinelReader(word, {
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

  test("is found however the stream is split, and nothing else is mistaken for one", () => {
    for (let at = 0; at <= stream.length; at++)
      for (let to = at; to <= stream.length; to += 29)
        expect(read([stream.subarray(0, at), stream.subarray(at, to), stream.subarray(to)])).toEqual(
          expected,
        );
    expect(read(Array.from(stream, (byte) => Buffer.from([byte])))).toEqual(expected);
  });

  test("holds back only its own beginning", () => {
    expect(read([Buffer.from("one\n")]).output).toBe("one\n");
    expect(read([Buffer.from(`one\x1e${word}`)]).output).toBe("one");
    expect(read([Buffer.from(`one\x1e${word}`), Buffer.from("x")]).output).toBe(`one\x1e${word}x`);
  });

  test("without an end is refused", () => {
    expect(() => read([Buffer.from(`\x1e${word} `), Buffer.alloc(20_000, 65)])).toThrow(
      "an incomplete sentinel",
    );
  });
});
