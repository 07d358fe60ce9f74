// Claims due documents, such as schedules that start runs, so only one process at a time works on each.

import {
  type Document,
  type Documents,
  type DocumentWrite,
  newVersion,
  type PickedDocument,
  type PickOptions,
} from "./documents.ts";

/** A due document that only the claiming process may write, with its `version`, until the lease ends. */
export interface ClaimedDocument extends Document {
  readonly collection: PickedDocument["collection"];
  /**
   * The store's clock at the claim, in ms since 1970. Compare due times with it, because the clocks of processes
   * differ.
   */
  readonly now: number;
}

export interface ClaimOptions extends Pick<PickOptions, "limit" | "aheadMs"> {
  /** The time until an unfinished claim expires, in ms. */
  readonly leaseMs: number;
}

/**
 * Claims due documents of a kind. Tenants take turns as in `Documents.pick`. One process claims each
 * document, works on it and then calls `finish`. If that process dies or takes longer than `leaseMs`, the
 * document is due again.
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

/**
 * Ends a claim by writing `body`, or by deleting the document if `body` is undefined. The document is due
 * again at `due`. Without `due`, it is never due again. Returns false without writing if the claim was lost:
 * another process claimed the document, or a user changed it.
 */
export async function finish(
  documents: Documents,
  { collection, key, version }: ClaimedDocument,
  { body, due = null }: Pick<DocumentWrite, "body" | "due">,
): Promise<boolean> {
  const write = { key, seen: version, body, due };
  return (await documents.write(collection, [write], { version: newVersion() })) === "written";
}

/**
 * Writes `body` and continues the claim, which still ends `leaseMs` after it began. Returns undefined without writing if the
 * claim was lost.
 */
export async function renew(
  documents: Documents,
  claimed: ClaimedDocument,
  { body, leaseMs }: { readonly body: string; readonly leaseMs: number },
): Promise<ClaimedDocument | undefined> {
  const { collection, key, version, now } = claimed;
  const next = newVersion();
  const write = { key, seen: version, body, due: now + leaseMs };
  const outcome = await documents.write(collection, [write], { version: next });
  return outcome === "written" ? { ...claimed, body, version: next } : undefined;
}

/**
 * Returns undefined if the document has changed. The new version fences out the process that claimed it
 * before.
 */
async function claim(
  documents: Documents,
  { collection, key, version: seen }: PickedDocument,
  leaseMs: number,
): Promise<ClaimedDocument | undefined> {
  const { found, now } = await documents.read(collection, [key]);
  const [document] = found;
  if (document?.version !== seen) return undefined;
  const { body } = document;
  const version = newVersion();
  const outcome = await documents.write(collection, [{ key, seen, body, due: now + leaseMs }], { version });
  return outcome === "written" ? { collection, key, body, version, now } : undefined;
}
