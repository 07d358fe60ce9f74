// Calls to Slack's Web API.

import { setTimeout as pause } from "node:timers/promises";
import { z } from "skein";

const Reply = z.looseObject({ ok: z.boolean(), error: z.string().optional(), ts: z.string().optional() });
type Reply = z.infer<typeof Reply>;

/** Slack understood the call and refused it. */
export class SlackRefusal extends Error {
  readonly code: string;
  constructor(method: string, code: string) {
    super(`Slack refused ${method}: ${code}`);
    this.code = code;
  }
}

export type CallSlack = (method: string, args: object) => Promise<Reply>;

const ATTEMPTS = 5;
/** The longest pause that Slack may request, in seconds. */
const LONGEST_S = 60;
const PATIENCE_MS = 15_000;

/**
 * `url` ends with a slash. A call that exceeds Slack's rate limit is retried after the time that Slack specifies. No
 * other call is retried, because Slack may have carried it out. Throws `SlackRefusal`, or `Error` if there is no
 * response.
 */
export function slackCaller(token: string, url: string): CallSlack {
  return async (method, args) => {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(url + method, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json; charset=utf-8" },
        body: JSON.stringify(args),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      if (response.status === 429 && attempt < ATTEMPTS) {
        await response.body?.cancel();
        const seconds = Number(response.headers.get("retry-after") ?? 1);
        await pause(1000 * Math.min(Number.isFinite(seconds) ? seconds : 1, LONGEST_S));
        continue;
      }
      const reply = Reply.safeParse(await response.json().catch(() => undefined)).data;
      if (!reply) throw new Error(`Slack answered ${method} with HTTP ${response.status}.`);
      if (!reply.ok) throw new SlackRefusal(method, reply.error ?? "unknown");
      return reply;
    }
  };
}
