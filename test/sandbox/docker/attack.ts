// Users of one server, one of whom attacks: what he does to himself is his own affair, and his neighbour must not
// notice anything of it.

import { expect } from "vitest";
import type { Backend, ExecOptions, ExecResult } from "../../../src/agent/core/backend.ts";
import { hasCode } from "../../../src/agent/core/errors.ts";
import { execute, readAll } from "../../support/backend.ts";
import type { Engine, TestImage } from "../../support/engine.ts";
import { ada, bob, configOf, newServer, newWorld } from "./opened.ts";

const MIB = 1024 ** 2;
const { signal } = new AbortController();

/** What the neighbour has, and no other user may see. */
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

/** Does something while the neighbour works on, and checks on him once more when it is done. */
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
  expect(String(await readAll(neighbour, "secret"))).toBe(SECRET);
  expect(await execute(neighbour, "cat secret")).toMatchObject({ output: SECRET, exitCode: 0 });
}

/**
 * Executes a command of the attacker, again if none could be started: a busy machine may take longer for a shell than the
 * server waits. What has begun is not repeated.
 */
export async function insist(
  attacker: Backend,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<ExecResult> {
  for (let tried = 1; ; tried++) {
    try {
      return await execute(attacker, command, options);
    } catch (error) {
      if (tried === 3 || !isBeforeItsStart(error)) throw error;
    }
  }
}

const isBeforeItsStart = (error: unknown) =>
  hasCode(error, "unavailable") ||
  (hasCode(error, "backend_failed") && error.message.startsWith("No shell can be started"));

/** As an agent would: it continues after each call, failed or not. */
export async function comesBack(attacker: Backend): Promise<void> {
  const work = () => execute(attacker, "echo back").catch(() => undefined);
  await expect.poll(async () => (await work())?.output, { interval: 10, timeout: 240_000 }).toBe("back\n");
  expect(String(await readAll(attacker, "f"))).toBe(KEPT);
}

/**
 * What some work costs the server's process: how much more memory, and the longest time that it computes without a pause.
 * That is processor time, which a busy machine does not change.
 */
export async function costOf(work: () => Promise<unknown>): Promise<{ mib: number; deafMs: number }> {
  const before = process.memoryUsage.rss();
  const computed = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  let [peak, deafMs, last] = [before, 0, computed()];
  const look = () => {
    const now = computed();
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
