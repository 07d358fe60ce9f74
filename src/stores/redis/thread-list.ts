// An owner's threads as they stand in the owner's list.

import type { Owner } from "../../core/ids.ts";
import type { Position } from "../page.ts";
import type { Connection } from "./connection.ts";
import { threadsKey } from "./keys.ts";
import { pageThreads } from "./scripts/page-threads.ts";

const CHUNK = 100;

export interface Listed extends Position {
  /** Its time, as the list has it. */
  readonly seen: string;
}

/** What stands after `start`, newest change first, in chunks. Threads may be listed that are not there any more. */
export async function* listed(
  redis: Connection,
  owner: Owner,
  start: Position | undefined,
): AsyncGenerator<Listed[], void, void> {
  const keys = { threads: threadsKey(owner) };
  let before = start;
  for (let skip = 0; ; ) {
    const args = { newest: before?.updatedAt ?? "+inf", skip, limit: CHUNK };
    const found = positions(await redis.run(pageThreads, keys, args));
    yield found.filter((each) => !before || standsAfter(before, each));
    if (found.length < CHUNK) return;
    // Only those that were changed at the same moment as the one before are passed over by number.
    const last = found.at(-1);
    skip = last?.updatedAt === before?.updatedAt ? skip + CHUNK : 0;
    before = last;
  }
}

const standsAfter = (before: Position, { updatedAt, id }: Position) =>
  updatedAt < before.updatedAt || (updatedAt === before.updatedAt && id < before.id);

function positions(flat: readonly string[]): Listed[] {
  const found: Listed[] = [];
  for (let at = 0; at < flat.length; at += 2) {
    const [id = "", seen = ""] = flat.slice(at, at + 2);
    found.push({ id, seen, updatedAt: Number(seen) });
  }
  return found;
}
