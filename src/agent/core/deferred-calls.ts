// The port to calls whose results come later: a tool's server said "not yet" and delivers the result to an address
// made for this one call. The run waits as interrupted; the records outlive the process.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";

/**
 * `sent`: no answer yet, the result may be the answer. `accepted`: the result comes later. `delivered`: it has come.
 * `left`: the thread has a stand-in for the result and continues; the result may still come. `late`: it came after that.
 */
export const CallState = z.enum(["sent", "accepted", "delivered", "left", "late"]);
export type CallState = z.infer<typeof CallState>;
/** `gone`: nothing is kept of it. */
type NextState = CallState | "gone";

type Changes = Readonly<Record<string, Partial<Readonly<Record<CallState, NextState>>>>>;

/** For each change, the state that follows each state. States that are not named stay as they are. */
const CHANGES = {
  accept: { sent: "accepted" },
  deliver: { sent: "delivered", accepted: "delivered", left: "late" },
  leave: { sent: "left", accepted: "left" },
  close: { sent: "gone", accepted: "gone", left: "gone" },
  // Not `left`: the late result is a message of its own, which a rewound thread takes as well.
  rewind: { sent: "gone", accepted: "gone", delivered: "gone" },
} as const satisfies Changes;
export type CallChange = keyof typeof CHANGES;

/** The state after a change; undefined when it changes nothing. A `deliver` after `expires_at` is refused before this. */
export function stateAfter(change: CallChange, state: CallState): NextState | undefined {
  return (CHANGES as Changes)[change]?.[state];
}

/** A change as pairs of states, for stores that apply it elsewhere. */
export const movesOf = (change: CallChange): [from: CallState, to: NextState][] =>
  CallState.options.flatMap((from) => {
    const to = stateAfter(change, from);
    return to ? [[from, to] as [CallState, NextState]] : [];
  });

/** The result is there, so the thread can continue. */
export const hasResult = (state: CallState) => state === "delivered" || state === "late";
/** The thread must be checked when the call expires. */
export const isAwaited = (state: CallState) => state === "accepted" || state === "left";

/** Of one thread. */
export const MAX_DEFERRED_CALLS = 100;

export const DeferredCall = z.object({
  owner: z.object({ tenant: z.string(), user: z.string() }),
  thread_id: z.string(),
  run_id: z.string(),
  call_id: z.string(),
  /** The tool's name. */
  tool: z.string(),
  /** The SHA-256 of the token in the address, in hex. The token itself is not kept. */
  token_hash: z.string(),
  /** No result is accepted after this. */
  expires_at: z.iso.datetime(),
  state: CallState,
  /** Once `delivered` or `late`: `{result}` or `{error}`, as it came. */
  reply: z.record(z.string(), z.unknown()).optional(),
});
export type DeferredCall = z.infer<typeof DeferredCall>;

export type NewDeferredCall = Omit<DeferredCall, "state" | "reply">;

/** The form in which a token is stored. */
export const tokenHash = (token: string) => createHash("sha256").update(token).digest("hex");

/** Names a call. */
export type CallKey = Pick<DeferredCall, "owner" | "thread_id" | "call_id">;

/** A thread that can continue: each of these calls has its result, or is awaited and has expired. */
export interface DueCalls {
  readonly owner: Owner;
  readonly thread_id: string;
  readonly call_ids: readonly string[];
}

/**
 * A call is kept until it is forgotten or its thread is cleared, deleted or expired. A call that was never accepted may
 * be removed when it expires.
 */
export interface DeferredCallStore {
  /**
   * To be called before the call is sent, since its result may come before the answer. Replaces an earlier record.
   * Throws `not_found` when there is no such thread, `limit_exceeded` when it has `MAX_DEFERRED_CALLS` calls.
   */
  open(call: NewDeferredCall): Promise<void>;
  get(key: CallKey): Promise<DeferredCall | undefined>;
  /** `sent` becomes `accepted`. Returns the call afterwards: `delivered` when the result came first. */
  accept(key: CallKey): Promise<DeferredCall | undefined>;
  /**
   * To be called before the thread gets a stand-in for the result. Returns the call afterwards: `delivered` when the
   * result came first and belongs in the thread; else `left`, and a result from then on is `late`.
   */
  leave(key: CallKey): Promise<DeferredCall | undefined>;
  /**
   * To be called before the thread gets an answer after which no result is accepted. Returns the call when its result
   * came first; else forgets it.
   */
  close(key: CallKey): Promise<DeferredCall | undefined>;
  /** Whether a call is kept for this token. It may have its result, or have expired. */
  isKept(tokenHash: string): Promise<boolean>;
  /**
   * Keeps the result, once. Returns the call, `delivered` or `late`. Undefined for an unknown, expired or used token:
   * callers cannot tell them apart.
   */
  deliver(tokenHash: string, reply: Record<string, unknown>): Promise<DeferredCall | undefined>;
  /** To be called once the call's result is in the thread, or will never come. */
  forget(key: CallKey): Promise<void>;
  /**
   * Threads that can continue and have no active or waiting run: at most `limit`, tenants in turn, longest waiting
   * first. Each is returned to one caller, and again once a lease has passed, until its calls are forgotten.
   */
  due(limit: number): Promise<DueCalls[]>;
}
