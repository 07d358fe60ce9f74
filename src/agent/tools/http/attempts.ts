// Executes one call in as many attempts as are safe. Retries if nothing was sent. If repeating the call does no harm, also
// retries after a temporary error status or a broken connection.

import { setTimeout as sleep } from "node:timers/promises";
import { backoff } from "../../../lib/backoff.ts";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import type { Stream } from "../../core/stream.ts";
import { failed } from "../../core/tool.ts";
import type { EndpointReply } from "./answer.ts";

const MAX_TRIES = 3;
const WAIT = { base: 250, jitter: 0.5 };

export type FinalAnswer = Exclude<EndpointReply, { kind: "refused" }>;

export interface Attempts {
  /** True if repeating the call does no harm. */
  readonly isRepeatable: boolean;
  /** Ends every attempt, and every wait between two attempts. */
  readonly signal: AbortSignal;
  /** Returns the remaining time of the call, in ms. A wait that would exceed this time does not start. */
  left(): number;
}

/**
 * Runs the attempts. Converts a `FetchError` to a result instead of throwing it. Throws the reason of
 * `signal`.
 */
export async function* persist(
  attempt: () => Stream<EndpointReply>,
  { isRepeatable, signal, left }: Attempts,
): Stream<FinalAnswer> {
  for (let tries = 1; ; tries++) {
    const { answer, isSafe } = yield* tried(attempt, isRepeatable);
    if (answer.kind !== "refused") return answer;
    const wait = answer.retryAfterMs ?? backoff(tries, WAIT);
    const { result, failure } = answer;
    if (!isSafe || tries === MAX_TRIES || wait >= left()) return { kind: "result", result, failure };
    await sleep(wait, undefined, { signal });
  }
}

async function* tried(attempt: () => Stream<EndpointReply>, isRepeatable: boolean) {
  try {
    return { answer: yield* attempt(), isSafe: isRepeatable };
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    const result = failed(sentenceOf(error, isRepeatable));
    const mayPass = error.failure === "unreachable" || error.failure === "broken";
    const failure = { code: error.failure, message: `${error.message}.`, cause: error.cause };
    const answer: EndpointReply = mayPass
      ? { kind: "refused", result, failure, retryAfterMs: undefined }
      : { kind: "result", result, failure };
    return { answer, isSafe: isRepeatable || error.failure === "unreachable" };
  }
}

function sentenceOf({ failure, message }: FetchError, isRepeatable: boolean): string {
  const doubt = failure === "broken" && !isRepeatable ? " The call's effect is unknown." : "";
  return `The call to the tool's server failed: ${message}.${doubt}`;
}
