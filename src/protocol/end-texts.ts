// Builds a sentence for people about how a run ended. The last event, every wire, the page, the terminal and the log
// all use it.

import type { LimitDetails } from "./limit-details.ts";

export interface EndFacts {
  readonly status: string;
  readonly stop_reason?: string | undefined;
  readonly details?: Pick<LimitDetails, "message"> | undefined;
  /** True if the model's last answer was empty. */
  readonly isEmpty?: boolean | undefined;
}

const TO_CONTINUE = "Send a message to continue.";

/** Returns undefined for a run that has not ended, and for a normal end, which needs no explanation. */
export function endText({ status, stop_reason = "", details, isEmpty }: EndFacts): string | undefined {
  switch (status) {
    case "error":
      return details?.message ?? limitText(stop_reason);
    case "cancelled":
      return STOPPED.get(stop_reason) ?? "The run was stopped.";
    case "interrupted":
      return stop_reason === "interrupt" ? `The run stopped after a step. ${TO_CONTINUE}` : undefined;
    default:
      return ANSWERED.get(stop_reason) ?? (isEmpty ? "The model returned no answer." : undefined);
  }
}

/** For views of a waiting turn, in which the run has ended but the turn has not. */
export const WAITING_TEXT = "The run is waiting for a result that will be delivered later.";

const STOPPED: ReadonlyMap<string, string> = new Map([
  ["credentials_revoked", "The run was stopped because its credentials were revoked."],
  ["superseded", "A new message arrived before the result that the run was waiting for."],
]);

const ANSWERED: ReadonlyMap<string, string> = new Map([
  ["refusal", "The model declined to answer."],
  ["max_tokens", "The answer was cut off at the model's token limit."],
]);

/**
 * Explains why a run ended at a limit. `reason` is its stop reason. If there is no number to show, a message from the
 * limit itself takes precedence.
 */
export function limitText(reason: string, details: Partial<LimitDetails> = {}): string {
  const { limit = reason, most, message } = details;
  const amount = most === undefined ? undefined : AMOUNTS.get(reason)?.(most);
  if (amount === undefined && message !== undefined) return message;
  const where = amount === undefined ? "at a limit" : `after ${amount}`;
  return `The run stopped ${where} (\`${limit}\`). ${TO_CONTINUE}`;
}

/** Returns the message for a limit that has no number. `cause` is a clause without a full stop. */
export const causeText = (cause: string) => `The run stopped because ${cause}. ${TO_CONTINUE}`;

const AMOUNTS: ReadonlyMap<string, (most: number) => string> = new Map([
  ["max_iterations", (most) => amountOf(most, "model call")],
  ["token_budget", (most) => amountOf(most, "token")],
  ["time_budget", durationOf],
]);

const amountOf = (number: number, unit: string) =>
  `${number.toLocaleString("en-US")} ${unit}${number === 1 ? "" : "s"}`;

function durationOf(seconds: number): string {
  if (seconds % 3600 === 0) return amountOf(seconds / 3600, "hour");
  return seconds % 60 === 0 ? amountOf(seconds / 60, "minute") : amountOf(seconds, "second");
}
