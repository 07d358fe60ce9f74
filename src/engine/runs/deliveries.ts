// Remembers which result was accepted for each deferred call until deliveries expire, so repeated deliveries get the
// same response. Stores only a hash of each result.

import { createHash } from "node:crypto";
import type { Documents, ListedCollection } from "../../agent/core/documents.ts";
import { messageOf } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";

const TAKEN: ListedCollection = { kind: "taken_results" };
const KEPT_MS = 24 * 3_600_000;
/** The maximum number of results that a deployment remembers. Further results are not remembered. */
const MAX_KEPT = 100_000;

type ReplyBody = Record<string, unknown>;

export interface Deliveries {
  /** Returns true if a result was accepted for this token. */
  isTaken(tokenHash: string): Promise<boolean>;
  /** Returns true if exactly this result was accepted for the token. */
  isSame(tokenHash: string, reply: ReplyBody): Promise<boolean>;
  /** Call this after `reply` is accepted. Never throws. */
  keep(tokenHash: string, reply: ReplyBody): Promise<void>;
  /** Removes the oldest entries. Never throws. */
  sweep(): Promise<void>;
}

export function createDeliveries(documents: Documents, logger: Pick<Logger, "warn">): Deliveries {
  const find = async (tokenHash: string) => (await documents.read(TAKEN, [tokenHash])).found[0];

  return {
    isTaken: async (tokenHash) => (await find(tokenHash)) !== undefined,
    isSame: async (tokenHash, reply) => (await find(tokenHash))?.body === digestOf(reply),
    async keep(tokenHash, reply) {
      try {
        const write = { key: tokenHash, seen: undefined, body: digestOf(reply) };
        await documents.write(TAKEN, [write], { version: `v${randomId()}`, limit: MAX_KEPT });
      } catch (error) {
        logger.warn({ reason: messageOf(error) }, "a repeated delivery of a result will not be recognized");
      }
    },
    async sweep() {
      try {
        await documents.trim(TAKEN, { ms: KEPT_MS });
      } catch (error) {
        logger.warn({ reason: messageOf(error) }, "accepted results could not be deleted");
      }
    },
  };
}

const digestOf = (reply: ReplyBody) => createHash("sha256").update(JSON.stringify(reply)).digest("base64url");
