// Calls whose results come later, in Redis.
//
// A call lies with its thread. Where that is can be found from the hash of its token, in a key of its own: it is written
// before anybody knows the token, and says too much, never too little, as the thread alone knows which token is good.
// The same holds for the note that a thread must be looked after: it is made before a call is accepted or delivered,
// and again for at once when it was delivered.

import {
  type CallChange,
  type CallKey,
  CallState,
  type DeferredCall,
  type DeferredCallStore,
  type DueCalls,
  hasResult,
  isAwaited,
  MAX_DEFERRED_CALLS,
  type NewDeferredCall,
  stateAfter,
} from "../../core/deferred-calls.ts";
import { randomId } from "../../lib/random-id.ts";
import { noSuchThread, tooManyDeferredCalls } from "../refusals.ts";
import type { Engine } from "./engine.ts";
import { DEFERRED, tenantTag, threadIdOf, threadKeys, threadTag, tokenKey } from "./keys.ts";
import { quietly } from "./lifetime.ts";
import { createNotes, type Note } from "./notes.ts";
import { ownerOf } from "./records.ts";
import { type CallReply, movesText } from "./scripts/call-parts.ts";
import { changeCall } from "./scripts/change-call.ts";
import { deliverCall } from "./scripts/deliver-call.ts";
import { dropToken } from "./scripts/drop-token.ts";
import { dueCalls } from "./scripts/due-calls.ts";
import { forgetCall } from "./scripts/forget-call.ts";
import { openCall } from "./scripts/open-call.ts";
import { putToken } from "./scripts/put-token.ts";
import { readCall } from "./scripts/read-call.ts";
import { readToken } from "./scripts/read-token.ts";

/** Clocks differ, and whoever delivered may ask again. */
const TOKEN_RESERVE_MS = 60_000;
/** Between blanks. */
const statesThat = (fits: (state: CallState) => boolean) => ` ${CallState.options.filter(fits).join(" ")} `;
const DUE = { with_result: statesThat(hasResult), awaited: statesThat(isAwaited) };
/** Threads that are looked at at once. */
const AT_ONCE = 32;

export function redisDeferredCalls({ redis, lifetime, limits }: Engine): DeferredCallStore {
  const { leaseMs, now } = limits;
  const notes = createNotes(redis, DEFERRED, leaseMs);

  return {
    async open({ owner: { tenant, user }, ...call }) {
      const { thread_id, call_id, token_hash } = call;
      const owner = { tenant, user };
      const thread = threadTag(owner, thread_id);
      const expires = Date.parse(call.expires_at);
      const about = JSON.stringify({ ...call, owner } satisfies NewDeferredCall);
      const args = { call: call_id, expires, token: token_hash, about, cap: MAX_DEFERRED_CALLS };
      const opened = await redis.run(openCall, threadKeys(thread), args);
      if (opened === "none") throw noSuchThread(thread_id);
      if (opened === "full") throw tooManyDeferredCalls(thread_id);
      const place = JSON.stringify([tenantTag(owner), thread, call_id] satisfies Place);
      const named = { place, expires, reserve: TOKEN_RESERVE_MS };
      await redis.run(putToken, { token: tokenKey(token_hash) }, named);
    },

    get,

    accept: (key) => awaited(key, "accept"),
    leave: (key) => awaited(key, "leave"),
    close: (key) => change(key, "close"),

    async deliver(tokenHash, reply) {
      const place = await redis.run(readToken, { token: tokenKey(tokenHash) }, {});
      if (place === null) return undefined;
      // Only `open` writes these.
      const [tenant, thread, call] = JSON.parse(place) as Place;
      await notes.note(tenant, thread, leaseMs);
      const args = { call, token: tokenHash, by: randomId(), moves: movesText("deliver") };
      const text = JSON.stringify(reply);
      const delivered = callOf(await redis.run(deliverCall, threadKeys(thread), { ...args, reply: text }));
      if (!delivered) return undefined;
      lifetime.renew(delivered.owner, delivered.thread_id);
      // When that cannot be said, it is found a lease later.
      await notes.note(tenant, thread, 0).catch(() => {});
      return delivered;
    },

    async forget(key) {
      const token = await redis.run(forgetCall, keysOf(key), { call: key.call_id });
      if (token !== null) forgetToken(token);
    },

    async due(limit) {
      const found: DueCalls[] = [];
      const until = performance.now() + leaseMs / 3;
      while (found.length < limit && performance.now() < until) {
        const picked = await notes.pick(Math.min(AT_ONCE, limit - found.length));
        if (picked.length === 0) break;
        // What cannot be looked at now is picked again later.
        const looked = await Promise.allSettled(picked.map(look));
        found.push(
          ...looked.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value] : [])),
        );
      }
      return found;
    },
  };

  async function get(key: CallKey): Promise<DeferredCall | undefined> {
    return callOf(await redis.run(readCall, keysOf(key), { call: key.call_id }));
  }

  /** First notes that the thread must be checked when the call expires, in case this process ends. */
  async function awaited(key: CallKey, by: "accept" | "leave"): Promise<DeferredCall | undefined> {
    const found = await get(key);
    if (!found || !stateAfter(by, found.state)) return found;
    const wait = Math.max(Date.parse(found.expires_at) - now(), leaseMs);
    await notes.note(tenantTag(key.owner), threadTag(key.owner, key.thread_id), wait);
    return change(key, by);
  }

  /** Returns the call as it is then. */
  async function change(key: CallKey, by: CallChange): Promise<DeferredCall | undefined> {
    const changed = await redis.run(changeCall, keysOf(key), { call: key.call_id, moves: movesText(by) });
    if (typeof changed !== "string") return callOf(changed);
    forgetToken(changed);
    return undefined;
  }

  function forgetToken(token: string): void {
    quietly(redis.run(dropToken, { token: tokenKey(token) }, {}));
  }

  /** One that is busy, or can go on, is picked again after a lease. */
  async function look(picked: Note): Promise<DueCalls | undefined> {
    const found = await redis.run(dueCalls, threadKeys(picked.thread), DUE);
    if (!found) return undefined;
    const [owner, call_ids, next] = found;
    if (owner !== null && call_ids.length > 0)
      return { owner: ownerOf(owner), thread_id: threadIdOf(picked.thread), call_ids };
    await notes.put(picked, next ?? undefined);
    return undefined;
  }
}

/** Where a call lies. */
type Place = [tenantTag: string, threadTag: string, callId: string];

const keysOf = ({ owner, thread_id }: CallKey) => threadKeys(threadTag(owner, thread_id));

function callOf(reply: CallReply | null): DeferredCall | undefined {
  if (!reply) return undefined;
  const [state, about, text] = reply;
  // The scripts write no other state, `open` what the call is about, and `deliver` the result.
  const call = { ...(JSON.parse(about) as NewDeferredCall), state: state as DeferredCall["state"] };
  return text === null ? call : { ...call, reply: JSON.parse(text) };
}
