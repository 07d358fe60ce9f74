// The dependencies of the server. Reports for each one whether it works, when that last changed, and the reason for a
// failure.

import { AppError } from "../../agent/core/errors.ts";
import { sharedFor } from "../../lib/async.ts";
import type { Logger } from "../../lib/logger.ts";

export interface Dependency {
  readonly name: string;
  /** Throws while the dependency is unusable. */
  check(): Promise<void>;
  /** True if the server works without the dependency. */
  readonly isOptional?: boolean;
}

export interface DependencyState {
  readonly name: string;
  readonly isUp: boolean;
  readonly isOptional: boolean;
  /** The time of the last status change, in ISO 8601. */
  readonly since: string;
  readonly checked_at: string;
  readonly error: AppError | undefined;
}

export interface Dependencies {
  /** Checks each dependency, and reuses a result for one second. Never rejects. */
  states(): Promise<readonly DependencyState[]>;
}

/** How long a result is reused, in ms. It limits the checks because `/ready` is public. */
const FRESH_MS = 1_000;

/** Logs when a dependency fails and when it recovers. */
export function createDependencies(
  dependencies: readonly Dependency[],
  logger: Pick<Logger, "info" | "warn">,
): Dependencies {
  const known = new Map<string, DependencyState>();

  async function look({ name, check, isOptional = false }: Dependency): Promise<DependencyState> {
    const error = await check().then(() => undefined, AppError.from);
    const checked_at = new Date().toISOString();
    const isUp = error === undefined;
    const before = known.get(name);
    const since = before?.isUp === isUp ? before.since : checked_at;
    if (error && before?.isUp !== false)
      logger.warn({ dependency: name, code: error.code, err: error }, "a dependency is unavailable");
    if (isUp && before?.isUp === false)
      logger.info({ dependency: name, away_since: before.since }, "a dependency is available again");
    const state = { name, isUp, isOptional, since, checked_at, error };
    known.set(name, state);
    return state;
  }

  return { states: sharedFor(FRESH_MS, () => Promise.all(dependencies.map(look))) };
}
