// Users of one server, one of whom attacks: what he does to himself is his own affair, and his neighbour must not
// notice anything of it.

import { expect } from "vitest";
import type { Backend } from "../../../src/core/backend.ts";
import { execute, readAll } from "../../support/backend.ts";
import type { Engine, TestImage } from "../../support/engine.ts";
import { ada, bob, configOf, newServer, newWorld } from "./opened.ts";

/** A neighbour who is served waits for some milliseconds; machines that run tests are busy. */
const PROMPTLY_MS = 5000;
const MIB = 1024 ** 2;
const { signal } = new AbortController();

/** What the neighbour has, and nobody else may ever see. */
export const SECRET = "the neighbour's own";
/** In the attacker's file `f`. */
export const KEPT = "kept";

export type House = Awaited<ReturnType<typeof newHouse>>;

/** Closed at the end of the file. */
export async function newHouse(engine: Engine, image: TestImage, more: object = {}) {
  const world = await newWorld();
  const { pool } = newServer(engine, world);
  const config = await configOf(engine, image, more);
  const [attacker, neighbour] = await Promise.all([
    pool.get(ada, config),
    pool.get(bob, await configOf(engine, "busybox")),
  ]);
  await Promise.all([
    attacker.write("f", Buffer.from(KEPT), signal),
    neighbour.write("secret", Buffer.from(SECRET), signal),
  ]);
  const restart = async () => {
    await pool.stop(ada, config);
    await pool.start(ada, config);
  };
  return { world, pool, attacker, neighbour, restart };
}

/** Does something while the neighbour works on, and looks after him once more when it is done. */
export async function beside<T>({ neighbour }: Pick<House, "neighbour">, attack: Promise<T>): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<true>();
  attack.then(
    () => resolve(true),
    () => resolve(true),
  );
  const pause = () => new Promise<false>((go) => setTimeout(() => go(false), 100));
  do await isServed(neighbour);
  while (!(await Promise.race([over, pause()])));
  await isServed(neighbour);
  return attack;
}

async function isServed(neighbour: Backend): Promise<void> {
  const began = performance.now();
  expect(String(await readAll(neighbour, "secret"))).toBe(SECRET);
  expect(await execute(neighbour, "cat secret")).toMatchObject({ output: SECRET, exitCode: 0 });
  expect(performance.now() - began).toBeLessThan(PROMPTLY_MS);
}

/** As an agent would: it goes on with its work, whatever became of the last call. */
export async function comesBack(attacker: Backend, ms = 30_000): Promise<void> {
  const work = () => execute(attacker, "echo back").catch(() => undefined);
  await expect.poll(async () => (await work())?.output, { interval: 10, timeout: ms }).toBe("back\n");
  expect(String(await readAll(attacker, "f"))).toBe(KEPT);
}

/** What the server's process takes while something is done: how much more memory, and how long it is deaf. */
export async function costOf(work: () => Promise<unknown>): Promise<{ mib: number; deafMs: number }> {
  const before = process.memoryUsage.rss();
  let [peak, deafMs, last] = [before, 0, performance.now()];
  const look = () => {
    const now = performance.now();
    peak = Math.max(peak, process.memoryUsage.rss());
    deafMs = Math.max(deafMs, now - last);
    last = now;
  };
  const timer = setInterval(look, 10);
  try {
    await work();
    await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    clearInterval(timer);
  }
  return { mib: (peak - before) / MIB, deafMs };
}
