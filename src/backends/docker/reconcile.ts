// Making the ledger and the engine agree: whatever carries our deployment's label is in the ledger, so that
// nothing is there that is never looked at again.

import type { Sandbox, SandboxState } from "../ledger.ts";
import type { ContainerSummary } from "./engine-info.ts";
import { ERRAND, labelOf, sandboxOf } from "./identity.ts";
import type { Host } from "./services.ts";

/** Nothing that is made right now is touched. */
const SETTLED_MS = 120_000;

/** Throws what the engine says. */
export async function reconcile(host: Host, signal: AbortSignal): Promise<void> {
  const containers = await host.engine.list(labelOf(host.deployment), signal);
  for (const container of containers) await reconcileContainer(host, container, signal);
  const known = new Set(containers.map(({ name }) => name));
  for (const { id, labels } of await host.disk.list(signal)) {
    const sandbox = known.has(id) ? undefined : sandboxOf(host.deployment, id, labels);
    if (sandbox) await reconcileFiles(host, sandbox);
  }
}

async function reconcileContainer(
  host: Host,
  container: ContainerSummary,
  signal: AbortSignal,
): Promise<void> {
  const { id, name, labels, status, createdAt } = container;
  const sandbox = ERRAND in labels ? undefined : sandboxOf(host.deployment, name, labels);
  if (!sandbox) {
    if (isSettled(createdAt)) await host.engine.remove(id, signal);
    return;
  }
  await host.ledger.adopt(sandbox, status === "running" ? "running" : "stopped");
  // Stopped by somebody else, or with the machine.
  if (status === "exited") await correct(host, name, ["running"], "stopped");
}

async function reconcileFiles(host: Host, sandbox: Sandbox): Promise<void> {
  await host.ledger.adopt(sandbox, "removed");
  await correct(host, sandbox.id, ["running", "stopped"], "removed");
}

async function correct(host: Host, id: string, wrong: readonly SandboxState[], state: "stopped" | "removed") {
  const seen = await host.ledger.get(id);
  if (!seen || !wrong.includes(seen.state) || !isSettled(seen.used_at)) return;
  const ending = await host.ledger.begin(seen);
  if (ending) await host.ledger.settle(ending, state);
}

const isSettled = (ms: number) => Date.now() - ms > SETTLED_MS;
