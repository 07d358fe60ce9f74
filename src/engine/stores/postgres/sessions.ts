// Checks that PostgreSQL keeps one session per connection. Some poolers use a different session for every transaction,
// in which case settings, prepared statements and notifications are silently lost.

import { once } from "node:events";
import type { ClientBase } from "pg";
import { AppError } from "../../../agent/core/errors.ts";
import { randomId } from "../../../lib/random-id.ts";
import { withTimeout } from "../shared/outages.ts";

interface Sessions {
  readonly client: ClientBase;
  /** A second, open connection. */
  readonly another: ClientBase;
  readonly deadlineMs: number;
}

/** Throws `config_invalid` if a connection does not keep its session. */
export async function checkSessions(sessions: Sessions): Promise<void> {
  const isKept = (await keepsProcess(sessions)) && (await hearsNotification(sessions));
  if (!isKept) throw new AppError("config_invalid", NO_SESSIONS);
}

export const NO_SESSIONS =
  "A pooler in front of PostgreSQL does not keep sessions. Set `pool_mode = session`, or give an address without a pooler.";

/** Returns true if an idle connection keeps its own PostgreSQL process while another connection is in a transaction. */
async function keepsProcess({ client, another }: Sessions): Promise<boolean> {
  const before = await processOf(client);
  await another.query("BEGIN");
  try {
    const others = await processOf(another);
    return others !== before && (await processOf(client)) === before;
  } finally {
    await another.query("ROLLBACK");
  }
}

async function processOf(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid ?? 0;
}

async function hearsNotification({ client, another, deadlineMs }: Sessions): Promise<boolean> {
  const channel = `skein_probe_${randomId()}`;
  await another.query(`LISTEN "${channel}"`);
  const stop = new AbortController();
  const heard = once(another, "notification", stop).then(() => true);
  try {
    await client.query("SELECT pg_notify($1, '')", [channel]);
    return await withTimeout(deadlineMs, heard).catch(() => false);
  } finally {
    stop.abort();
    await another.query(`UNLISTEN "${channel}"`).catch(() => {});
  }
}
