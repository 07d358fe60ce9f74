// Unsent texts, stored by user and conversation. They are kept after the tab is closed, until the user signs out.

import { userOfTab } from "./credentials.ts";
import { forgetFiles } from "./kept-files.ts";

const PREFIX = "skein.draft.";
/** The maximum number of drafts in this browser. A new draft replaces the oldest one. */
const MAX_DRAFTS = 100;

interface Draft {
  readonly text: string;
  readonly at: number;
  /** The id of the message that the text will replace. */
  readonly replaces?: string;
}

/** A message that the user is rewriting. */
export interface Rewrite {
  readonly id: string;
  readonly text: string;
}

const ownPrefix = () => `${PREFIX}${userOfTab()} `;

/** Returns the storage key of a draft. If there is no thread, the draft belongs to the next new conversation. */
export const placeOf = (thread: string | undefined): string => `${ownPrefix()}${thread ?? "new"}`;

export const draftOf = (thread: string | undefined): string => read(placeOf(thread))?.text ?? "";

export function saveDraft(thread: string | undefined, text: string): void {
  const place = placeOf(thread);
  if (text === "") localStorage.removeItem(place);
  else save(place, { text, at: Date.now() });
}

/** A thread id cannot contain a space. */
const rewritePlace = (thread: string) => placeOf(`${thread} rewrite`);

export function rewriteOf(thread: string): Rewrite | undefined {
  const { replaces: id, text = "" } = read(rewritePlace(thread)) ?? {};
  return id === undefined ? undefined : { id, text };
}

export const saveRewrite = (thread: string, { id, text }: Rewrite): void =>
  save(rewritePlace(thread), { text, at: Date.now(), replaces: id });

export const forgetRewrite = (thread: string): void => localStorage.removeItem(rewritePlace(thread));

function save(place: string, draft: Draft): void {
  const others = drafts(PREFIX)
    .filter((each) => each !== place)
    .sort((a, b) => (read(a)?.at ?? 0) - (read(b)?.at ?? 0));
  for (const oldest of others.splice(0, Math.max(0, others.length + 1 - MAX_DRAFTS)))
    localStorage.removeItem(oldest);
  while (!wasStored(place, draft)) {
    const oldest = others.shift();
    if (oldest === undefined) return;
    localStorage.removeItem(oldest);
  }
}

/** Returns false if the storage is full. */
function wasStored(place: string, draft: Draft): boolean {
  try {
    localStorage.setItem(place, JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

/** Deletes the signed-in user's drafts and their files. */
export async function forgetDrafts(): Promise<void> {
  for (const place of drafts(ownPrefix())) localStorage.removeItem(place);
  await forgetFiles(ownPrefix());
}

const drafts = (prefix: string) => Object.keys(localStorage).filter((key) => key.startsWith(prefix));

function read(place: string): Draft | undefined {
  try {
    return JSON.parse(localStorage.getItem(place) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}
