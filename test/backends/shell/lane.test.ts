import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { runScript, SandboxLostError } from "../../../src/backends/shell/script.ts";
import type { Channel, OpenChannel } from "../../../src/backends/shell/session.ts";
import { ShellSession } from "../../../src/backends/shell/session.ts";
import { childShell, describeShells } from "../../support/child-shell.ts";
import { folder, opened, run, started } from "../../support/lanes.ts";

const { signal } = new AbortController();

afterEach(() => {
  vi.useRealTimers();
});

describeShells("a lane of", (shell) => {
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
    // Some builds of busybox bring their own.
    const { fields } = await run(lane, { script: "head -c 9 >/dev/null || r=$?", input: hostile });
    expect(file === "busybox" ? ["0", "127"] : ["127"]).toContain(fields[0]);
    expect(String((await run(lane, "echo next")).output)).toBe("next\n");
    expect(existsSync(join(folder, "harm"))).toBe(false);
  });

  test("is lost when its shell ends, in the middle or before", async () => {
    const lane = await opened(open);
    await expect(run(lane, "kill -s KILL $$")).rejects.toThrow(SandboxLostError);
    await expect(run(lane, ":")).rejects.toThrow(SandboxLostError);
    const other = await opened(open);
    await expect(run(other, "exit 3")).rejects.toThrow(SandboxLostError);
    await expect(opened(open, "exit 3")).rejects.toThrow(SandboxLostError);
    await expect(opened(open, "if then")).rejects.toThrow(SandboxLostError);
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
    const waiting = runScript(
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
