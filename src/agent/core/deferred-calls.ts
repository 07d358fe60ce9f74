// The port to deferred calls, whose results arrive later. The tool's server answers "not yet" and delivers the result to an
// address made for this call. The run waits as interrupted, and the records outlive the process.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";

/**
 * `sent`: the server has not responded yet. `accepted`: the result will arrive later. `delivered`: the result
 * arrived. `left`: the thread continued with a placeholder for the result, which may still arrive. `late`: the
 * result arrived after the placeholder.
 */
export const CallState = z.enum(["sent", "accepted", "delivered", "left", "late"]);
export type CallState = z.infer<typeof CallState>;
/** `gone`: the record is deleted. */
type NextState = CallState | "gone";

type CallChanges = Readonly<Record<string, Partial<Readonly<Record<CallState, NextState>>>>>;

/** Maps each change and current state to the next state. Unlisted states do not change. */
const CHANGES = {
  accept: { sent: "accepted" },
  deliver: { sent: "delivered", accepted: "delivered", left: "late" },
  leave: { sent: "left", accepted: "left" },
  close: { sent: "gone", accepted: "gone", left: "gone" },
  // Excludes `left`: its late result becomes a separate message, which a rewound thread accepts as well.
  rewind: { sent: "gone", accepted: "gone", delivered: "gone" },
} as const satisfies CallChanges;
export type CallChange = keyof typeof CHANGES;

/**
 * Returns the state after a change, or undefined if nothing changes. The caller must refuse a `deliver` that
 * arrives after `expires_at`.
 */
export function stateAfter(change: CallChange, state: CallState): NextState | undefined {
  return (CHANGES as CallChanges)[change]?.[state];
}

/** Returns a change as pairs of states, for stores that apply it outside this process. */
export const movesOf = (change: CallChange): [from: CallState, to: NextState][] =>
  CallState.options.flatMap((from) => {
    const to = stateAfter(change, from);
    return to ? [[from, to] as [CallState, NextState]] : [];
  });

/** True if the result has arrived, so the thread can continue. */
export const hasResult = (state: CallState) => state === "delivered" || state === "late";
/** True if the thread must be checked when the call expires. */
export const isAwaited = (state: CallState) => state === "accepted" || state === "left";

/** The maximum number of deferred calls per thread. */
export const MAX_DEFERRED_CALLS = 100;

export const DeferredCall = z.object({
  owner: z.object({ tenant: z.string(), user: z.string() }),
  thread_id: z.string(),
  run_id: z.string(),
  call_id: z.string(),
  /** The name of the tool. */
  tool: z.string(),
  /** The SHA-256 hash of the token in the delivery address, in hex. The token itself is not stored. */
  token_hash: z.string(),
  /** The time until which a result is accepted. */
  expires_at: z.iso.datetime(),
  state: CallState,
  /** Set once the call is `delivered` or `late`: `{result}` or `{error}`, as received. */
  reply: z.record(z.string(), z.unknown()).optional(),
});
export type DeferredCall = z.infer<typeof DeferredCall>;

export type NewDeferredCall = Omit<DeferredCall, "state" | "reply">;

/** Returns the stored form of a token. */
export const tokenHash = (token: string) => createHash("sha256").update(token).digest("hex");

/** Identifies a call. */
export type CallKey = Pick<DeferredCall, "owner" | "thread_id" | "call_id">;

/** A thread that can continue, because each of these calls has a result or has expired. */
export interface DueCalls {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly call_ids: readonly string[];
}

/**
 * A call is kept until `forget`, or until its thread is cleared, deleted or expired. A call that was never
 * accepted may be removed when it expires.
 */
export interface DeferredCallStore {
  /**
   * Call this before sending the call, because its result may arrive before the response. Replaces an earlier
   * record. Throws `not_found` when the thread does not exist, or `limit_exceeded` when it already has
   * `MAX_DEFERRED_CALLS` calls.
   */
  open(call: NewDeferredCall): Promise<void>;
  get(key: CallKey): Promise<DeferredCall | undefined>;
  /**
   * Changes `sent` to `accepted`. Returns the updated call, which is `delivered` if the result arrived first.
   */
  accept(key: CallKey): Promise<DeferredCall | undefined>;
  /**
   * Call this before the thread gets a placeholder for the result. Returns the updated call. If it is
   * `delivered`, the result arrived first and belongs in the thread. If it is `left`, a later result becomes
   * `late`.
   */
  leave(key: CallKey): Promise<DeferredCall | undefined>;
  /**
   * Call this before the thread gets a final result for the call. Returns the call if its own result arrived
   * first. Otherwise deletes the record, and later results are refused.
   */
  close(key: CallKey): Promise<DeferredCall | undefined>;
  /** True if a call with this token is stored, even if it has a result or has expired. */
  isKept(tokenHash: string): Promise<boolean>;
  /**
   * Stores the result once. Returns the call as `delivered` or `late`. Returns undefined for an unknown,
   * expired or used token, so callers cannot distinguish these cases.
   */
  deliver(tokenHash: string, reply: Record<string, unknown>): Promise<DeferredCall | undefined>;
  /** Call this once the result is in the thread, or will never arrive. */
  forget(key: CallKey): Promise<void>;
  /**
   * Returns at most `limit` threads that can continue and have no active or waiting run. Tenants take turns,
   * and the thread that has waited longest comes first. Each thread is returned to one caller at a time. It
   * is returned again after a lease has passed, until its calls are forgotten.
   */
  due(limit: number): Promise<DueCalls[]>;
}
