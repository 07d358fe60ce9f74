// The ids of responses and of their items. Each id contains everything that is needed to find the item, so no ids are
// stored.

import type { RunRecord } from "../../../agent/core/records.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";

/** The id of a response consists of the run's id followed by the thread's id. */
export const responseIdOf = ({ id, thread_id }: Pick<RunRecord, "id" | "thread_id">) =>
  `resp_${id.replace(/^run_/, "")}_${thread_id}`;

const RESPONSE_ID = /^resp_(?<run>[0-9A-Za-z]{22})_(?<thread>[A-Za-z0-9_-]{1,128})$/;

export function runOfResponse(id: string): { run_id: string; thread_id: string } | undefined {
  const { run, thread } = RESPONSE_ID.exec(id)?.groups ?? {};
  return run === undefined || thread === undefined ? undefined : { run_id: `run_${run}`, thread_id: thread };
}

/** Returns the call of a question. Several questions of subagents may belong to one call of their parent. */
export const askedCallOf = ({ id, call_id, asked_by }: Interrupt) => (asked_by ? id : call_id);

export const approvalIdOf = (question: Interrupt) => `mcpr_${askedCallOf(question)}`;
