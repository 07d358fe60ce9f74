// Deferred results: the address that a call's server delivers its result to, and the stored record of a call that was sent
// before.
//
// An address accepts one result of one call. Its token derives from the tool's secret, and only the token's hash is stored
// with the call. Therefore, read access to stored calls is not enough to deliver a result. A call that is sent again after a
// crash keeps the same address.

import { createHmac } from "node:crypto";
import { maskedValue } from "../../../lib/mask.ts";
import {
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  tokenHash,
} from "../../core/deferred-calls.ts";
import { deliveredResult } from "../../core/delivered-result.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Run } from "../../core/tool.ts";
import { failed, interrupted, type ToolResult } from "../../core/tool.ts";
import { type HttpTool, maskOfTool } from "./registration.ts";
import type { ResultAddress } from "./request.ts";
import type { HttpToolStore } from "./store.ts";

/** The maximum time that a deferred result may take to arrive, in ms. */
const PATIENCE_MS = 24 * 3_600_000;

export interface Deferral {
  readonly store: Pick<DeferredCallStore, "open" | "get" | "accept" | "close">;
  /** Returns the public address of this server for one token. */
  urlOf(token: string): string;
}

/** One call's deferred result. */
export interface DeferredResult {
  /**
   * Returns the result of an earlier attempt, or `interrupted` while it is pending. Returns undefined when
   * the call must be sent.
   */
  known(): Promise<ToolResult | undefined>;
  /** Call this before sending the call. */
  open(): Promise<ResultAddress>;
  /** Call this when the server has announced that the result will arrive later. */
  accept(): Promise<ToolResult>;
  /**
   * Call this when the call has another result. Later deliveries are refused. Returns a result that was
   * already delivered, if any.
   */
  close(): Promise<ToolResult | undefined>;
}

export function deferredResult(
  { store, urlOf }: Deferral,
  { tool, call, run }: { tool: HttpTool; call: ToolCall; run: Run },
): DeferredResult {
  const key: CallKey = { owner: run.owner, thread_id: run.threadId, call_id: call.id };
  /** The record that an attempt before a crash stored. */
  let sent: DeferredCall | undefined;
  return {
    async known() {
      const found = await store.get(key);
      if (found?.tool !== call.name) return undefined;
      if (found.state === "sent") sent = found;
      if (found.state === "delivered") return deliveredResult(found);
      if (found.state !== "accepted") return undefined;
      return Date.parse(found.expires_at) > Date.now() ? interrupted() : failed(NEVER_CAME);
    },
    async open() {
      const before = sent && addressFor(sent.expires_at);
      if (before?.token_hash === sent?.token_hash && before) return before.address;
      const { address, token_hash } = addressFor(new Date(Date.now() + PATIENCE_MS).toISOString());
      const expires_at = address.result_expires_at;
      await store.open({ ...key, run_id: run.id, tool: call.name, expires_at, token_hash });
      return address;
    },
    async accept() {
      const found = await store.accept(key);
      return found?.state === "delivered" ? deliveredResult(found) : interrupted();
    },
    async close() {
      const found = await store.close(key);
      return found?.state === "delivered" ? deliveredResult(found) : undefined;
    },
  };

  function addressFor(result_expires_at: string): { address: ResultAddress; token_hash: string } {
    const names = [key.owner.tenant, key.owner.user, key.thread_id, run.id, call.id, result_expires_at];
    const mac = createHmac("sha256", tool.secret).update(JSON.stringify(names)).digest("base64url");
    const token = `tr_${mac}`;
    return { address: { result_url: urlOf(token), result_expires_at }, token_hash: tokenHash(token) };
  }
}

/** Returns the same store, with delivered results masked. Results of a removed tool are not masked. */
export function maskedCalls(calls: DeferredCallStore, tools: Pick<HttpToolStore, "get">): DeferredCallStore {
  async function masked(call: DeferredCall | undefined): Promise<DeferredCall | undefined> {
    const tool = call?.reply && (await tools.get(call.owner.tenant, call.tool));
    return call && tool ? { ...call, reply: maskedValue(call.reply, maskOfTool(tool)) } : call;
  }
  return {
    open: (call) => calls.open(call),
    get: async (key) => masked(await calls.get(key)),
    accept: async (key) => masked(await calls.accept(key)),
    leave: async (key) => masked(await calls.leave(key)),
    close: async (key) => masked(await calls.close(key)),
    isKept: (tokenHash) => calls.isKept(tokenHash),
    async deliver(tokenHash, reply) {
      const call = await calls.deliver(tokenHash, reply);
      // The result is already stored, so this must not fail. If the call is not `late`, the result is not
      // sent to an active run and remains due.
      return masked(call).catch(() => call && { ...call, state: "delivered" });
    },
    forget: (key) => calls.forget(key),
    due: (limit) => calls.due(limit),
  };
}

const NEVER_CAME = "The tool's server announced a later result but did not deliver it within 24 hours.";
