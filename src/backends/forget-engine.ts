// An engine that is lost for good, with all files on it: its users get new workspaces on the others.

import { AppError } from "../core/errors.ts";
import type { SandboxLedger } from "./ledger.ts";

export interface Forgotten {
  /** Sandboxes whose files were there. */
  readonly lost: number;
  /** Those that were being moved: they continue with what the other engine has of them. */
  readonly kept: number;
}

/** May be repeated. Throws `invalid_request` for one that the settings name: it would take sandboxes again. */
export async function forgetEngine(
  ledger: Pick<SandboxLedger, "list" | "forget">,
  named: readonly string[],
  engine: string,
): Promise<Forgotten> {
  if (named.includes(engine))
    throw new AppError(
      "invalid_request",
      `This server uses the engine \`${engine}\`. Remove it from \`backends.docker.engines\` of all servers and restart them first.`,
    );
  const counts = { lost: 0, kept: 0 };
  for (const { id } of await ledger.list()) {
    const outcome = await ledger.forget(id, engine);
    if (outcome) counts[outcome]++;
  }
  return counts;
}
