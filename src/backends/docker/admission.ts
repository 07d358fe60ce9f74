// Whether one more sandbox may run.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError } from "../../core/errors.ts";
import type { Sandbox } from "../ledger.ts";
import { retire } from "./retire.ts";
import type { Host } from "./services.ts";

/** What is not used for so long may be stopped for another one. Processes tell of their use more often. */
const ROOM_IDLE_MS = 60_000;
const CANDIDATES = 5;
const ASK_AGAIN_MS = 100;

/** Enters it in the ledger as running. Throws `unavailable` or `limit_exceeded` when there is no room for it. */
export async function admit(host: Host, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  let hasMadeRoom = false;
  for (;;) {
    const answer = await host.ledger.enter(sandbox, host.caps);
    if (answer === "entered") return;
    if (answer === "tenant") throw tooMany(host.caps.tenant);
    if (answer === "total") {
      if (hasMadeRoom || !(await makeRoom(host, signal))) throw allInUse(host.caps.total);
      hasMadeRoom = true;
    } else await sleep(ASK_AGAIN_MS, undefined, { signal });
  }
}

/** One that could not be made to run takes no room. Throws what the engine says. */
export async function withdraw({ engine, ledger }: Host, id: string): Promise<void> {
  const found = await engine.inspect(id);
  const seen = found?.status === "running" ? undefined : await ledger.get(id);
  const ending = seen?.state === "running" ? await ledger.begin(seen) : undefined;
  if (ending) await ledger.settle(ending, found ? "stopped" : "removed");
}

async function makeRoom(host: Host, signal: AbortSignal): Promise<boolean> {
  for (const seen of await host.ledger.idle(ROOM_IDLE_MS, CANDIDATES))
    if (await retire(host, seen, signal)) return true;
  return false;
}

const tooMany = (most: number) =>
  new AppError(
    "limit_exceeded",
    `At most ${most} sandboxes of one tenant may run at once. Stop one, or wait until one is idle.`,
    { details: { limit: "sandboxes", most } },
  );

const allInUse = (most: number) =>
  new AppError("unavailable", `All ${most} sandboxes of this server are in use. Try again later.`);
