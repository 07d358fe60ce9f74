// Empties the engines that drain: their unused sandboxes are moved to others, one after the other.

import { AppError } from "../../core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import type { SandboxRecord } from "../ledger.ts";
import type { Engines } from "./engines.ts";
import type { Host } from "./host.ts";
import { deleteCopy, moveSandbox } from "./move.ts";

/** A running sandbox is moved when it was not used for so long. */
const IDLE_MS = 60_000;
const BATCH_SIZE = 100;
/** One that could not be moved is not copied again at once. */
const RETRY_MS = 5 * 60_000;

/** Returns a function that moves what may be moved now, and passes over what is in use or has failed shortly before. */
export function drainer(engines: Engines, logger: Logger) {
  const failed = new Map<string, number>();

  const move = async (from: Host, seen: SandboxRecord, signal: AbortSignal): Promise<void> => {
    try {
      const to = await engines.place();
      if (!to) throw new AppError("unavailable", "No other Docker engine takes sandboxes.");
      if (seen.copy !== undefined) await deleteCopy(await engines.host(seen.copy), seen, signal);
      else await moveSandbox({ from, to, seen }, signal);
    } catch (err) {
      if (signal.aborted) return;
      logger.warn({ sandbox: seen.id, engine: from.name, err }, "could not move a sandbox to another engine");
      failed.set(seen.id, performance.now());
    }
  };

  return async (hosts: readonly Host[], signal: AbortSignal): Promise<void> => {
    for (const [id, at] of failed) if (performance.now() - at > RETRY_MS) failed.delete(id);
    for (const from of hosts.filter(({ name }) => engines.isDraining(name)))
      for (const seen of await unusedOn(from))
        if (!signal.aborted && !failed.has(seen.id)) await move(from, seen, signal);
  };
}

async function unusedOn({ ledger, name }: Host): Promise<SandboxRecord[]> {
  const idle = await ledger.idle(IDLE_MS, BATCH_SIZE, { engine: name });
  const others = await ledger.list();
  const unused = others.filter(
    ({ engine, state }) => engine === name && (state === "stopped" || state === "removed"),
  );
  return [...unused, ...idle].slice(0, BATCH_SIZE);
}
