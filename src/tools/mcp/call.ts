// One call as the loop sees it: it ends in time, shows its progress, and its failures are results in words.

import type { StreamEvent } from "../../core/event.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Stream } from "../../core/stream.ts";
import { firstChars } from "../../lib/text.ts";
import type { Progress } from "./connection.ts";
import type { Mask } from "./secrets.ts";

const MAX_LINE = 500;
/** Of one call; more renew its time, but are not shown. */
const MAX_SHOWN = 1000;

/** The time a call has. */
export interface Limits {
  /** Aborts when the run does, and when a limit is passed. */
  readonly signal: AbortSignal;
  /** What the limit was that was passed: completes "It …". */
  passed(): string | undefined;
  /** To be called at every sign of life; the time between two of them is limited from the first on. */
  renew(): void;
  /** Gives the call up if it is still under way. */
  end(): void;
}

export function limitsOf(
  { timeout, idle_timeout }: { readonly timeout: number; readonly idle_timeout: number },
  run: AbortSignal,
): Limits {
  const expiry = new AbortController();
  let passed: string | undefined;
  const expire = (what: string) => {
    passed = what;
    expiry.abort(new Error("The call took too long."));
  };
  const total = setTimeout(() => expire(`did not end within ${timeout / 1000} s`), timeout);
  let idle: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([run, expiry.signal]),
    passed: () => passed,
    renew() {
      idle ??= setTimeout(() => expire(`said nothing for ${idle_timeout / 1000} s`), idle_timeout);
      idle.refresh();
    },
    end() {
      clearTimeout(total);
      clearTimeout(idle);
      expiry.abort(new Error("Nobody waits for the call any more."));
    },
  };
}

/** Runs `work`; what it hands to `show` comes out as events. Bounded: what a slow reader has not taken is let go. */
export async function* showing<T>(
  call: ToolCall,
  mask: Mask,
  work: (show: (progress: Progress) => void) => Promise<T>,
): Stream<T> {
  let unread: string[] = [];
  let shown = 0;
  let wake = () => {};
  let isOver = false;
  const show = (progress: Progress) => {
    if (shown++ >= MAX_SHOWN) return;
    unread.push(lineOf(progress, mask));
    wake();
  };
  const working = work(show).finally(() => {
    isOver = true;
    wake();
  });
  // Whoever leaves early does not wait for it.
  working.catch(() => {});
  while (!isOver || unread.length > 0) {
    if (unread.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    const output = unread.join("");
    unread = [];
    if (output !== "") yield progressEvent(call, output);
  }
  return await working;
}

const progressEvent = (call: ToolCall, output: string): StreamEvent => ({
  event: "on_tool_progress",
  name: call.name,
  data: { call_id: call.id, output },
});

function lineOf({ progress, total, message }: Progress, mask: Mask): string {
  const count = total === undefined ? `${progress}` : `${progress}/${total}`;
  return `${message ? `${count} ${mask(firstChars(message, MAX_LINE).toWellFormed())}` : count}\n`;
}
