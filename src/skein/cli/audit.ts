// `skein audit`: prints the newest entries of a tenant's audit trail, from a running server.

import { createClient } from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

export interface TrailOptions {
  readonly tenant?: string | undefined;
  readonly user?: string | undefined;
  readonly action?: string | undefined;
  readonly since?: string | undefined;
}

const PAGE = 100;

/** Prints the newest entries first. */
export async function listTrail(
  { url, key }: { readonly url: string; readonly key: string | undefined },
  options: TrailOptions,
): Promise<string> {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const { admin } = createClient({ baseUrl: url, headers });
  const rows: string[][] = [];
  let cursor: string | undefined;
  do {
    const limit = PAGE - rows.length;
    const page = await admin.audit({ limit, ...omitUndefined({ ...options, cursor }) });
    for (const { at, action, outcome, actor, target, ip = "" } of page.items)
      rows.push([at, `${actor.type} ${actor.id}`, action, target?.id ?? "", outcome, ip]);
    cursor = page.next_cursor;
  } while (cursor !== undefined && rows.length < PAGE);
  return tableOf([t().audit.head, ...rows]);
}
