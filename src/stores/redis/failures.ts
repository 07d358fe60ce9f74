// What it means when Redis refuses, or does not answer.

import { AppError } from "../../core/errors.ts";

/** Redis will take the same a moment later: it loads its data, or another of its servers has just become the first. */
const PASSES = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|UNBLOCKED) /;

/** What only an operator can mend: the start of Redis's answer, and what it means. */
const REFUSALS: readonly [start: RegExp, meaning: string][] = [
  [/^OOM /, "Redis is full. Try again later."],
  [/^MISCONF /, "Redis cannot write to its disk. Try again later."],
  [/^NOREPLICAS /, "Redis has lost its replicas. Try again later."],
  [/^BUSY /, "Redis is busy. Try again later."],
  [/^(NOAUTH|WRONGPASS|NOPERM) /, "Redis does not let this server in."],
];

/** Redis has answered, with a refusal. */
export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === "ReplyError";

/** Redis does not know the script with this hash: it was restarted, or another server has taken over. */
export const isUnknownScript = (error: unknown) => isReply(error) && error.message.startsWith("NOSCRIPT");

/** The server on the other end is a replica now. */
export const isReplica = (error: unknown) => isReply(error) && error.message.startsWith("READONLY");

/** Whether the same command may succeed a little later. What is no answer of Redis is trouble on the way to it. */
export const mayPass = (error: unknown) => !isReply(error) || PASSES.test(error.message);

/** What Redis's refusal means to whoever asked. */
export function refusal(error: unknown): unknown {
  if (!isReply(error)) return error;
  const [, meaning] = REFUSALS.find(([start]) => start.test(error.message)) ?? [];
  return meaning === undefined ? error : new AppError("unavailable", meaning, { cause: error });
}

export function missingReplicas(count: number): AppError {
  const whom = count === 1 ? "Redis's replica does" : `${count} replicas of Redis do`;
  return new AppError("unavailable", `${whom} not have what was written. Try again later.`);
}

export function noAnswer(cause: unknown): AppError {
  return new AppError("unavailable", "Redis does not answer. Try again later.", { cause });
}
