// The caller of a request that starts a turn.

import type { FastifyRequest } from "fastify";
import type { Caller } from "../../engine/runs/prepare-turn.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { ownerOf, sentBy } from "../auth/guard.ts";
import { idempotencyKey } from "./run-stream.ts";

/** Call this after `guard`. */
export const callerOf = (request: FastifyRequest): Caller =>
  omitUndefined({ owner: ownerOf(request), ...sentBy(request), idempotency_key: idempotencyKey(request) });
