// The events that the end of a run causes, and the data that receivers get: ids, status, reason and usage, but no
// contents.

import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { EndingRun } from "../runs/services.ts";
import type { WebhookEvent } from "./webhook.ts";

/** An event as other rooms report it. */
export interface ToldEvent {
  readonly type: WebhookEvent;
  readonly thread_id?: string;
  readonly run_id?: string;
  readonly agent?: string;
  /** The data that receivers get in addition to the ids. Must not contain contents or secrets. */
  readonly data: object;
}

/**
 * Returns the events that the end of a run causes for the webhooks of users and tenants. Runs of subagents cause no
 * events.
 */
export function eventsOfEnd({ run, end, interrupts, isChild }: EndingRun): readonly ToldEvent[] {
  if (isChild) return [];
  const ids = { thread_id: run.thread_id, run_id: run.id, agent: run.agent };
  const { usage } = end.data;
  if (end.event === "error")
    return [{ type: "run.failed", ...ids, data: { status: "error", code: end.data.code, usage } }];
  const { status, stop_reason } = end.data;
  const ended: ToldEvent = { type: "run.ended", ...ids, data: { status, stop_reason, usage } };
  if (interrupts.length === 0) return [ended];
  const questions = interrupts.map(({ id, kind, name }) => omitUndefined({ id, kind, name }));
  return [ended, { type: "interrupt.opened", ...ids, data: { interrupts: questions } }];
}

export const statusOfEnd = ({ end }: Pick<EndingRun, "end">): string =>
  end.event === "done" ? end.data.status : "error";
