// What a server was given to prove who we are, kept out of whatever it says.

import type { McpServerDefinition } from "./options.ts";

const SECRET_NAME = /key|secret|token|password|credential|auth|cookie/i;
/** Shorter values are no secrets, and would be found in any text. */
const MIN_LENGTH = 6;

export type Mask = (text: string) => string;

/** The error as the log may have it: its message and its stack, and those of its causes. */
export function maskedError(error: unknown, mask: Mask): Error {
  if (!(error instanceof Error)) return new Error(mask(String(error)));
  const cause = error.cause === undefined ? undefined : maskedError(error.cause, mask);
  const masked = new Error(mask(error.message), { cause });
  masked.name = error.name;
  masked.stack = mask(error.stack ?? error.message);
  return masked;
}

/** Blots out the values of those headers, variables and parameters of the URL whose names sound like a secret. */
export function maskOf(definition: McpServerDefinition): Mask {
  const named =
    "url" in definition
      ? [...Object.entries(definition.headers), ...new URL(definition.url).searchParams]
      : Object.entries(definition.env);
  const secrets = named
    .filter(([name]) => SECRET_NAME.test(name))
    .flatMap(([, value]) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= MIN_LENGTH && !/^bearer$/i.test(value))
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((masked, secret) => masked.replaceAll(secret, "***"), text);
}
