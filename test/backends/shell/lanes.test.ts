import { afterEach, describe, expect, test, vi } from "vitest";
import { SandboxLostError } from "../../../src/backends/shell/script.ts";
import { ShellSession } from "../../../src/backends/shell/session.ts";
import { ShellPool } from "../../../src/backends/shell/session-pool.ts";
import { dash, folder, lanes, opened, run, started } from "../../support/lanes.ts";

const { signal } = new AbortController();

afterEach(() => {
  vi.useRealTimers();
});

describe("the lanes of a sandbox", () => {
  /** Opens as many as are asked for, and tells how many. */
  function counting(limit: number, open = dash) {
    let count = 0;
    const pool = new ShellPool({
      limit,
      async open(limit) {
        count++;
        const lane = await ShellSession.open(open, { signal: limit });
        lanes.push(lane);
        return lane;
      },
    });
    return { pool, count: () => count };
  }

  test("are opened when they are needed, and used again", async () => {
    const { pool, count } = counting(2);
    for (let turn = 0; turn < 5; turn++) pool.release(await pool.acquire(signal));
    expect(count()).toBe(1);
    const [one, two] = await Promise.all([pool.acquire(signal), pool.acquire(signal)]);
    expect(one).not.toBe(two);
    expect(count()).toBe(2);
    pool.close(new Error("the end"));
  });

  test("come to those who wait in their order, and to the urgent one first", async () => {
    const { pool, count } = counting(1);
    const lane = await pool.acquire(signal);
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
    pool.release(lane);
    await Promise.all(waiting);
    expect(order).toEqual(["urgent", "urgent too", "one", "two"]);
    pool.release(extra);
    expect([lane.isClosed, extra.isClosed].sort()).toEqual([false, true]);
    pool.close(new Error("the end"));
  });

  test("are waited for by 64 at most", async () => {
    const { pool } = counting(1);
    const lane = await pool.acquire(signal);
    const waiting = Array.from({ length: 64 }, () =>
      pool.acquire(signal).then((taken) => pool.release(taken)),
    );
    await expect(pool.acquire(signal)).rejects.toMatchObject({ code: "unavailable" });
    pool.release(lane);
    await Promise.all(waiting);
    pool.release(await pool.acquire(signal));
    pool.close(new Error("the end"));
  });

  test("are replaced when they are lost, also while somebody waits", async () => {
    const { pool, count } = counting(1);
    const lane = await pool.acquire(signal);
    const waiting = pool.acquire(signal);
    await expect(run(lane, "kill -s KILL $$")).rejects.toThrow(SandboxLostError);
    pool.release(lane);
    pool.release(await waiting);
    expect(count()).toBe(2);
    const idle = await pool.acquire(signal);
    pool.release(idle);
    idle.close(new SandboxLostError("gone"));
    expect(await pool.acquire(signal)).not.toBe(idle);
    pool.close(new Error("the end"));
  });

  test("that cannot be opened leave nobody waiting", async () => {
    const failing = Promise.withResolvers<never>();
    const { pool, count } = counting(2, () => failing.promise);
    const waiting = Array.from({ length: 10 }, () => pool.acquire(signal));
    failing.reject(new Error("no engine"));
    for (const { status } of await Promise.allSettled(waiting)) expect(status).toBe("rejected");
    expect(count()).toBeLessThanOrEqual(4);
    await expect(pool.acquire(signal)).rejects.toThrow("no engine");
  });

  test("that cannot be opened do not spoil those that can", async () => {
    let opening = 0;
    const { pool } = counting(2, (events, limit) => {
      if (++opening === 2) throw new Error("no room");
      return dash(events, limit);
    });
    const waiting = Array.from({ length: 10 }, () => pool.acquire(signal).then((lane) => pool.release(lane)));
    await Promise.all(waiting);
    pool.close(new Error("the end"));
  });

  test("are not given back before they are free", async () => {
    const { pool } = counting(1);
    const lane = await pool.acquire(signal);
    const abort = new AbortController();
    const running = run(lane, ": > busy; while [ ! -e free ]; do sleep 0.01; done", abort.signal);
    await started("busy");
    abort.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    pool.release(lane);
    const waiting = pool.acquire(signal);
    await run(await opened(), ": > free");
    expect(await waiting).toBe(lane);
    expect(lane.isIdle).toBe(true);
    pool.close(new Error("the end"));
  });

  test("are closed when nobody needs them for five minutes", async () => {
    const { pool } = counting(1);
    const lane = await pool.acquire(signal);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    pool.release(lane);
    vi.advanceTimersByTime(5 * 60_000 - 1);
    expect(lane.isClosed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(lane.isClosed).toBe(true);
  });

  test("fail all who wait and all who work when they are closed", async () => {
    const { pool } = counting(1);
    const lane = await pool.acquire(signal);
    const working = run(lane, `while [ -d ${folder} ]; do sleep 0.1; done`);
    const waiting = pool.acquire(signal);
    pool.close(new Error("the end"));
    await expect(working).rejects.toThrow("the end");
    await expect(waiting).rejects.toThrow("the end");
    await expect(pool.acquire(signal)).rejects.toThrow("the end");
  });
});
