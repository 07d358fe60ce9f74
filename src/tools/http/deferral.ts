// Results that come later: what a call's server needs to deliver one, and what is known of one that was asked for
// before.
//
// An address is good for one result of one call. Its token is random, and only its hash is kept, so that whoever
// reads the store can deliver nothing.

import { type CallKey, type DeferredCallStore, tokenHash } from "../../core/deferred-calls.ts";
import { replyResult } from "../../core/http-tool-reply.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Run } from "../../core/run.ts";
import { failed, interrupted, type ToolResult } from "../../core/tool.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Delivery } from "./request.ts";

/** How long a result may be on its way. */
const PATIENCE_MS = 24 * 3_600_000;

export interface Deferral {
  readonly store: Pick<DeferredCallStore, "open" | "get" | "accept" | "forget">;
  /** The address of one token: what the outside reaches this server by. */
  urlOf(token: string): string;
}

/** One call's part in it. */
export interface DeferredResult {
  /** What is known from before: the result, or that it is still to come. Nothing when it has to be sent. */
  known(): Promise<ToolResult | undefined>;
  /** Before the call is sent. */
  open(): Promise<Delivery>;
  /** The server said "later". */
  accept(): Promise<ToolResult>;
  /** The call has its result. */
  forget(): Promise<void>;
}

export function deferredResult({ store, urlOf }: Deferral, call: ToolCall, run: Run): DeferredResult {
  const key: CallKey = { owner: run.owner, thread_id: run.threadId, call_id: call.id };
  return {
    async known() {
      const found = await store.get(key);
      if (found?.tool !== call.name || found.state === "sent") return undefined;
      if (found.state === "delivered") return resultOf(found.reply);
      return Date.parse(found.expires_at) > Date.now() ? interrupted() : failed(NEVER_CAME);
    },
    async open() {
      const token = `tr_${randomId()}${randomId()}`;
      const expires_at = new Date(Date.now() + PATIENCE_MS).toISOString();
      await store.open({
        ...{ ...key, run_id: run.id, tool: call.name, expires_at },
        token_hash: tokenHash(token),
      });
      return { result_url: urlOf(token), result_expires_at: expires_at };
    },
    async accept() {
      const found = await store.accept(key);
      return found?.state === "delivered" ? resultOf(found.reply) : interrupted();
    },
    forget: () => store.forget(key),
  };
}

const NEVER_CAME = "The tool's server promised to deliver a result, and did not within a day.";

const resultOf = (reply: unknown) => replyResult(reply) ?? failed("The tool's server delivered nothing.");
