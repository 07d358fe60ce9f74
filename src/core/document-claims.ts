// Due documents that one process at a time works on, such as schedules that are to start a run.

import { randomId } from "../lib/random-id.ts";
import type { Document, Documents, Picked, PickOptions } from "./documents.ts";

/** A due document that only its holder may write, with its `version`, until the lease ends. */
export interface ClaimedDocument extends Document {
  readonly collection: Picked["collection"];
}

export interface ClaimOptions extends Pick<PickOptions, "limit" | "aheadMs"> {
  readonly leaseMs: number;
}

/**
 * Claims due documents of a kind, tenants in turn, as `Documents.pick` does: up to `limit`. Each is claimed by one process; to finish,
 * write it with its `version` and without a `due`, or with a later one. A process that dies, or does not finish within `leaseMs`,
 * loses the claim: the document is due again, and a late write of it is refused as `changed`. So is one after a user has changed it.
 */
export async function claimDue(
  documents: Documents,
  kind: string,
  { limit, leaseMs, aheadMs }: ClaimOptions,
): Promise<ClaimedDocument[]> {
  const picked = await documents.pick(kind, { limit, holdMs: leaseMs, aheadMs });
  const claims = await Promise.all(picked.map((each) => claim(documents, each, leaseMs)));
  return claims.flatMap((each) => each ?? []);
}

/** Undefined when it was changed in the meantime. A new version fences the process that claimed it before. */
async function claim(
  documents: Documents,
  { collection, key, version: seen }: Picked,
  leaseMs: number,
): Promise<ClaimedDocument | undefined> {
  const { found, now } = await documents.read(collection, [key]);
  const [document] = found;
  if (document?.version !== seen) return undefined;
  const { body } = document;
  const version = `v${randomId()}`;
  const outcome = await documents.write(collection, [{ key, seen, body, due: now + leaseMs }], { version });
  return outcome === "written" ? { collection, key, body, version } : undefined;
}
