import { afterEach, describe, expect, test, vi } from "vitest";
import { SandboxLostError } from "../../../src/sandbox/shell/script.ts";
import { ShellSession } from "../../../src/sandbox/shell/session.ts";
import { ShellPool } from "../../../src/sandbox/shell/session-pool.ts";
import { Shell } from "../../../src/sandbox/shell/shell.ts";
import { dash, folder, opened, run, sessions, started } from "../../support/sessions.ts";

const { signal } = new AbortController();

afterEach(() => {
  vi.useRealTimers();
});

describe("the sessions of a sandbox", () => {
  /** Opens as many as are asked for, and tells how many. */
  function counting(limit: number, open = dash) {
    let count = 0;
    const pool = new ShellPool({
      limit,
      async open(limit) {
        count++;
        const session = await ShellSession.open(open, { signal: limit });
        sessions.push(session);
        return session;
      },
    });
    return { pool, count: () => count };
  }

  test("are opened when needed, and reused", async () => {
    const { pool, count } = counting(2);
    for (let turn = 0; turn < 5; turn++) pool.release(await pool.acquire(signal));
    expect(count()).toBe(1);
    const [one, two] = await Promise.all([pool.acquire(signal), pool.acquire(signal)]);
    expect(one).not.toBe(two);
    expect(count()).toBe(2);
    pool.close(new Error("the end"));
  });

  test("serve waiting callers in order, urgent ones first", async () => {
    const { pool, count } = counting(1);
    const session = await pool.acquire(signal);
    const order: string[] = [];
    const wait = async (name: string, taking: Promise<ShellSession>) => {
      const taken = await taking;
      order.push(name);
      pool.release(taken);
    };
    const abort = new AbortController();
    const waiting = [wait("one", pool.acquire(signal)), wait("two", pool.acquire(signal))];
    const gone = pool.acquire(abort.signal);
    abort.abort(new Error("enough"));
    await expect(gone).rejects.toThrow("enough");
    const extra = await pool.acquireFirst(signal);
    expect(count()).toBe(2);
    waiting.push(wait("urgent", pool.acquireFirst(signal)), wait("urgent too", pool.acquireFirst(signal)));
    pool.release(session);
    await Promise.all(waiting);
    expect(order).toEqual(["urgent", "urgent too", "one", "two"]);
    pool.release(extra);
    expect([session.isClosed, extra.isClosed].sort()).toEqual([false, true]);
    pool.close(new Error("the end"));
  });

  test("have at most 64 waiting callers, and a cancelled one makes room", async () => {
    const { pool } = counting(1);
    const session = await pool.acquire(signal);
    const wait = () => pool.acquire(signal).then((taken) => pool.release(taken));
    const abort = new AbortController();
    const cancelled = pool.acquire(abort.signal);
    const waiting = Array.from({ length: 63 }, wait);
    await expect(pool.acquire(signal)).rejects.toMatchObject({ code: "unavailable" });
    abort.abort(new Error("enough"));
    await expect(cancelled).rejects.toThrow("enough");
    waiting.push(wait());
    await expect(pool.acquire(signal)).rejects.toMatchObject({ code: "unavailable" });
    pool.release(session);
    await Promise.all(waiting);
    pool.release(await pool.acquire(signal));
    pool.close(new Error("the end"));
  });

  test("are replaced when they are lost, even while a caller waits", async () => {
    const { pool, count } = counting(1);
    const session = await pool.acquire(signal);
    const waiting = pool.acquire(signal);
    await expect(run(session, "kill -s KILL $$")).rejects.toThrow(SandboxLostError);
    pool.release(session);
    pool.release(await waiting);
    expect(count()).toBe(2);
    const idle = await pool.acquire(signal);
    pool.release(idle);
    idle.close(new SandboxLostError("gone"));
    expect(await pool.acquire(signal)).not.toBe(idle);
    pool.close(new Error("the end"));
  });

  test("that cannot be opened leave no caller waiting", async () => {
    const failing = Promise.withResolvers<never>();
    const { pool, count } = counting(2, () => failing.promise);
    const waiting = Array.from({ length: 10 }, () => pool.acquire(signal));
    failing.reject(new Error("no engine"));
    for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe("rejected");
    expect(count()).toBeLessThanOrEqual(4);
    await expect(pool.acquire(signal)).rejects.toThrow("no engine");
  });

  test("that cannot be opened do not affect those that can", async () => {
    let opening = 0;
    const { pool } = counting(2, (events, limit) => {
      if (++opening === 2) throw new Error("no room");
      return dash(events, limit);
    });
    const waiting = Array.from({ length: 10 }, () =>
      pool.acquire(signal).then((session) => pool.release(session)),
    );
    await Promise.all(waiting);
    pool.close(new Error("the end"));
  });

  test("are not reused before they are free", async () => {
    const { pool } = counting(1);
    const session = await pool.acquire(signal);
    const abort = new AbortController();
    const running = run(session, ": > busy; while [ ! -e free ]; do sleep 0.01; done", abort.signal);
    await started("busy");
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    pool.release(session);
    const waiting = pool.acquire(signal);
    await run(await opened(), ": > free");
    expect(await waiting).toBe(session);
    expect(session.isIdle).toBe(true);
    pool.close(new Error("the end"));
  });

  test("are closed when unused for five minutes", async () => {
    const { pool } = counting(1);
    const session = await pool.acquire(signal);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    pool.release(session);
    vi.advanceTimersByTime(5 * 60_000 - 1);
    expect(session.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(session.isClosed).toBe(true);
  });

  test("fail all waiting and running callers when they are closed", async () => {
    const { pool } = counting(1);
    const session = await pool.acquire(signal);
    const working = run(session, `while [ -d ${folder} ]; do sleep 0.1; done`);
    const waiting = pool.acquire(signal);
    const failed = [working, waiting].map((each) => expect(each).rejects.toThrow("the end"));
    pool.close(new Error("the end"));
    await Promise.all(failed);
    await expect(pool.acquire(signal)).rejects.toThrow("the end");
  });
});

describe("a shell", () => {
  const openedShell = (open = dash, onSilence = () => {}) =>
    new Shell(open, { workdir: folder, prelude: 'half() { r="0 $(($1 / 2))"; }', onSilence });

  test("runs many scripts at once, each with its own answer", async () => {
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

  test("survives any loss of its sessions", async () => {
    const shell = openedShell();
    for (let round = 0; round < 20; round++) {
      const replies = [":", "exit", "kill -s KILL $$", ":", "if then"].map((script) =>
        shell.runOnce({ script }, signal),
      );
      const settled = await Promise.allSettled(replies);
      for (const reply of settled)
        if (reply.status === "rejected") expect(reply.reason).toBeInstanceOf(SandboxLostError);
    }
    const last = () => shell.runOnce({ script: "echo alive" }, signal).catch(() => undefined);
    await expect.poll(async () => String((await last())?.output)).toBe("alive\n");
    shell.close(new Error("the end"));
  });
});
