// Answers that the user has given but not yet sent. The browser stores them for all of its tabs.

import type { Answer } from "../client/client.ts";
import { userOfTab } from "./credentials.ts";
import { touch } from "./frame.ts";

const PREFIX = "skein.given.";
/** The maximum number of stored answers. A new answer replaces the oldest one. */
const MAX_GIVEN = 100;

interface StoredAnswer {
  readonly answer: Answer;
  readonly at: number;
}

/** Touched when an answer is given or withdrawn, in this tab or another. */
export const given = {};

const placeOf = (key: string) => `${PREFIX}${userOfTab()} ${key}`;

/** `key`: the result of `keyOf` in questions.ts. */
export const givenTo = (key: string): Answer | undefined => read(placeOf(key))?.answer;

export function keepGiven(key: string, answer: Answer): void {
  const others = places(PREFIX).sort((a, b) => (read(a)?.at ?? 0) - (read(b)?.at ?? 0));
  for (const oldest of others.slice(0, Math.max(0, others.length + 1 - MAX_GIVEN)))
    localStorage.removeItem(oldest);
  const kept: StoredAnswer = { answer, at: Date.now() };
  localStorage.setItem(placeOf(key), JSON.stringify(kept));
  touch(given);
}

export function forgetGiven(key: string): void {
  localStorage.removeItem(placeOf(key));
  touch(given);
}

/** Deletes the signed-in user's answers. */
export function forgetAllGiven(): void {
  for (const place of places(placeOf(""))) localStorage.removeItem(place);
}

addEventListener("storage", ({ key }) => {
  if (key?.startsWith(PREFIX)) touch(given);
});

const places = (prefix: string) => Object.keys(localStorage).filter((key) => key.startsWith(prefix));

function read(place: string): StoredAnswer | undefined {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}
