// Deletes a sandbox's files from an engine, including files left by an interrupted move.

import { AppError } from "../../agent/core/errors.ts";
import type { SandboxLedger } from "../ledger.ts";
import type { SandboxRecord } from "../sandbox-records.ts";
import type { Host } from "./host.ts";

/**
 * The number of milliseconds between two extensions of the time that this process has for its work. After a minute
 * without an extension, other processes consider this process dead.
 */
const EXTEND_MS = 15_000;

/**
 * Deletes the files that a move left on the engine `copy`. Returns false and does nothing if the sandbox was used in the
 * meantime.
 */
export async function deleteCopy(copy: Host, seen: SandboxRecord, signal: AbortSignal): Promise<boolean> {
  if (seen.copy !== copy.name || (seen.state !== "stopped" && seen.state !== "removed")) return false;
  const begun = await copy.ledger.begin(seen);
  if (!begun) return false;
  await using hold = holding(copy.ledger, begun, signal);
  const where = await deleteFiles(copy, seen.id).then(
    () => ({ copy: null }),
    async (error: unknown) => {
      await copy.ledger.settle(hold.record, seen.state as "stopped" | "removed");
      throw error;
    },
  );
  return copy.ledger.settle(hold.record, seen.state, where);
}

/** Deletes a sandbox's files. Also works for users who are being deleted. Does nothing if no files exist. */
export async function deleteFiles({ engine, disk }: Host, id: string): Promise<void> {
  await engine.remove(id);
  await disk.remove(id);
}

/** Keeps a sandbox in the state `ending` until disposed, so no other process uses the sandbox. */
export function holding(ledger: SandboxLedger, begun: SandboxRecord, signal: AbortSignal) {
  const lost = new AbortController();
  let record = begun;
  let last: Promise<void> = Promise.resolve();
  const extend = (where?: Parameters<SandboxLedger["extend"]>[1]): Promise<void> => {
    const next = last.then(async () => {
      const extended = await ledger.extend(record, where);
      if (!extended) throw new AppError("unavailable", "Another server has taken over the sandbox.");
      record = extended;
    });
    last = next.catch((error: unknown) => lost.abort(error));
    return next;
  };
  const timer = setInterval(() => void extend().catch(() => {}), EXTEND_MS);
  return {
    /** Aborts when the caller's signal aborts, or when another process takes over the sandbox. */
    signal: AbortSignal.any([signal, lost.signal]),
    extend,
    get record() {
      return record;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await last;
    },
  };
}
