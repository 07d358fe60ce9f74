// Which result was taken for each deferred call, for as long as one could be delivered: a delivery that is repeated because its answer
// was lost gets the same answer. Of a result only a hash is kept.

import { createHash } from "node:crypto";
import type { Documents, ListedCollection } from "../../agent/core/documents.ts";
import { messageOf } from "../../agent/core/errors.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";

const TAKEN: ListedCollection = { kind: "taken_results" };
const KEPT_MS = 24 * 3_600_000;
/** Maximum number of results to remember in a deployment. Further ones are not remembered. */
const MAX_KEPT = 100_000;

type Reply = Record<string, unknown>;

export interface Deliveries {
  /** Whether a result was taken for this token. */
  isTaken(tokenHash: string): Promise<boolean>;
  /** Whether this very result was taken for the token. */
  isSame(tokenHash: string, reply: Reply): Promise<boolean>;
  /** To be called once `reply` is taken. Never throws. */
  keep(tokenHash: string, reply: Reply): Promise<void>;
  /** Forgets the oldest. Never throws. */
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
        logger.warn({ reason: messageOf(error) }, "a repeated delivery of a result will not be known again");
      }
    },
    async sweep() {
      try {
        await documents.trim(TAKEN, { ms: KEPT_MS });
      } catch (error) {
        logger.warn({ reason: messageOf(error) }, "taken results could not be forgotten");
      }
    },
  };
}

const digestOf = (reply: Reply) => createHash("sha256").update(JSON.stringify(reply)).digest("base64url");
