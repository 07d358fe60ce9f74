// Admits a sandbox to run if the limits allow it, or stops an idle sandbox to make room.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../agent/core/errors.ts";
import type { SandboxesOf } from "../ledger.ts";
import type { SandboxCaps } from "../sandbox-caps.ts";
import type { Engines, UnplacedSandbox } from "./engines.ts";
import type { Host } from "./host.ts";
import { expire } from "./reaper.ts";

/**
 * The number of milliseconds without use after which a sandbox may be stopped to make room for another one. A process
 * that uses a sandbox reports that use more often than this.
 */
const ROOM_IDLE_MS = 60_000;
const CANDIDATES = 5;
const RETRY_MS = 100;

/**
 * Records the sandbox as running and returns its engine. Throws `unavailable` or `limit_exceeded` if a limit is
 * reached.
 */
export async function admit(engines: Engines, sandbox: UnplacedSandbox, signal: AbortSignal): Promise<Host> {
  let hasMadeRoom = false;
  for (;;) {
    const { host, answer } = await engines.enter(sandbox, async (host, placed) => ({
      host,
      answer: await host.ledger.enter(placed, host.caps),
    }));
    if (answer === "entered") return host;
    if (answer === "ending") await sleep(RETRY_MS, undefined, { signal });
    // Another process changed the record first.
    if (answer === "ending" || answer === "elsewhere") continue;
    const { tenant } = sandbox.owner;
    if (answer === "disk") throw TOO_MANY.disk(host.caps);
    const full = { tenant: { tenant }, engine: { engine: host.name }, total: {} }[answer];
    if (hasMadeRoom || !(await makeRoom(engines, host, full, signal))) throw TOO_MANY[answer](host.caps);
    hasMadeRoom = true;
  }
}

/** Undoes `admit` after a failed start. Throws the engine's error. */
export async function withdraw({ engine, ledger }: Host, id: string): Promise<void> {
  const found = await engine.inspect(id);
  const seen = found?.status === "running" ? undefined : await ledger.get(id);
  const ending = seen?.state === "running" ? await ledger.begin(seen) : undefined;
  if (ending) await ledger.settle(ending, found ? "stopped" : "removed");
}

/** Stops one idle sandbox, preferably of the tenant with the most sandboxes. Returns false if none could be stopped. */
async function makeRoom(
  engines: Engines,
  { ledger, logger }: Host,
  of: SandboxesOf,
  signal: AbortSignal,
): Promise<boolean> {
  for (const seen of await ledger.idle(ROOM_IDLE_MS, CANDIDATES, of))
    try {
      if (await expire(await engines.host(seen.engine), seen, signal)) return true;
    } catch (err) {
      signal.throwIfAborted();
      logger.warn({ sandbox: seen.id, engine: seen.engine, err }, "could not stop an idle sandbox");
    }
  return false;
}

const TOO_MANY = {
  tenant: ({ tenant }: SandboxCaps) =>
    new AppError(
      "limit_exceeded",
      `At most ${tenant} of a tenant's sandboxes can run at the same time. Stop one, or wait until one is idle.`,
      { details: { limit: "sandboxes", most: tenant } },
    ),
  total: ({ total }: SandboxCaps) =>
    new AppError("unavailable", `All ${total} sandboxes of this server are in use. Try again later.`),
  engine: ({ engine }: SandboxCaps) =>
    new AppError(
      "unavailable",
      `All ${engine} sandboxes on this workspace's engine are in use. Try again later.`,
    ),
  // Stopping an idle sandbox would not help, because its files stay on disk.
  disk: ({ tenantDisk }: SandboxCaps) =>
    new AppError(
      "limit_exceeded",
      `All sandboxes of a tenant together may use at most ${tenantDisk} bytes of disk, even if they are stopped. Ask the operator for more, or delete a user who no longer needs a sandbox.`,
      { details: { limit: "backends.docker.disk_per_tenant", most: tenantDisk } },
    ),
};
