// What the suites of calls whose results come later start from.

import { type CallKey, type NewDeferredCall, tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import { randomId } from "../../../src/lib/random-id.ts";
import { ADA, inWorld } from "./fixture.ts";

export const MINUTE = 60_000;
export const LEASE_MS = 10_000;
/** The fixture's clock begins at ten. */
const EXPIRES_AT = "2026-11-21T10:30:00.000Z";

export const newCall = (call_id: string, more: Partial<NewDeferredCall> = {}): NewDeferredCall => ({
  ...{ owner: ADA, thread_id: "t", run_id: "run_1", call_id, tool: "weather", expires_at: EXPIRES_AT },
  ...{ token_hash: tokenHash(randomId()), ...more },
});

export const reply = (result: unknown) => ({ result });
export const keyOf = ({ owner, thread_id, call_id }: NewDeferredCall): CallKey => ({
  owner,
  thread_id,
  call_id,
});

/** With an idle thread `t` of Ada's. */
export const withThread: typeof inWorld = (open, body, options) =>
  inWorld(
    open,
    async (world) => {
      await world.stores.threads.create(ADA, { id: "t", metadata: {} });
      await body(world);
    },
    options,
  );
