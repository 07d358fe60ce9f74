// Masks secrets that were sent to others (in headers, variables or URL parameters) in texts that repeat them.

import { replacer, replacingAll, type StreamReplacer } from "./replacer.ts";

export interface Mask {
  (text: string): string;
  /** Masks one text that arrives in pieces. A secret can be split between pieces. */
  inPieces(): StreamReplacer;
}

const SECRET_NAME = /key|secret|token|password|credential|auth|cookie/i;
/** Shorter values are unlikely to be secrets and would match everywhere. */
const MIN_LENGTH = 6;

/** Masks values whose names suggest a secret, as a whole and word by word, both raw and JSON-encoded. */
export function maskOf(named: Iterable<readonly [name: string, value: string]>): Mask {
  const secrets = [...named]
    .filter(([name]) => SECRET_NAME.test(name))
    .flatMap(([, value]) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= MIN_LENGTH && !/^bearer$/i.test(value))
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)]);
  const words = new Map(secrets.map((secret) => [secret, "***"]));
  return Object.assign(replacingAll(words), { inPieces: replacer(words) });
}

/** Returns a copy with all texts masked, including the names of members. */
export function maskedValue<T>(value: T, mask: Mask): T;
export function maskedValue(value: unknown, mask: Mask): unknown {
  if (typeof value === "string") return mask(value);
  if (Array.isArray(value)) return value.map((each) => maskedValue(each, mask));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [mask(name), maskedValue(each, mask)]),
  );
}

/** Returns a copy for the log, with message, stack and causes masked. */
export function maskedError(error: unknown, mask: Mask): Error {
  if (!(error instanceof Error)) return new Error(mask(String(error)));
  const cause = error.cause === undefined ? undefined : maskedError(error.cause, mask);
  const masked = new Error(mask(error.message), { cause });
  masked.name = error.name;
  masked.stack = mask(error.stack ?? error.message);
  return masked;
}
