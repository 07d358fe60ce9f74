// Records why delegated tasks failed, per user and agent, and shows the reasons to agents with similar tasks. Delegation
// writes and reads the records if the hook is on.

import { createHash } from "node:crypto";
import { z } from "zod";
import { isIn } from "../../../lib/search.ts";
import { firstChars, xmlTag } from "../../../lib/text.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { ItemStore, Shelf } from "../../core/items.ts";

/** The maximum number of reflections per agent. The oldest are removed first. */
const MAX_KEPT = 64;
const MAX_TASK_CHARS = 2000;
const MAX_SUMMARY_CHARS = 4000;
/** The maximum number of reflections to show to one agent. */
const MAX_TOLD = 5;
const MAX_TOLD_BYTES = 32 * 1024;
/**
 * The minimum number of words, each of at least four letters, that a new task must share with a reflection.
 */
const MIN_WORDS = 2;
/** The maximum number of words to compare, counted from the beginning of a task. */
const MAX_WORDS = 200;
const WORD = /[\p{L}\p{N}_]{4,}/gu;

/** The agent that the reflections belong to. */
export interface ReflectionScope {
  readonly owner: Owner;
  readonly agent: string;
}

export interface TaskFailure {
  /** The task, in the words in which the failed agent received it. */
  readonly task: string;
  /** The reason for the failure. */
  readonly summary: string;
  /** The time of the failure. Default: now. */
  readonly at?: Date;
}

const Reflection = z.object({ task: z.string(), summary: z.string(), at: z.iso.datetime() });
type Reflection = z.infer<typeof Reflection>;

/** Records a failure. Recording the same failure again has no effect. Throws the store's errors. */
export async function recordFailure(
  items: ItemStore,
  place: ReflectionScope,
  { task, summary, at = new Date() }: TaskFailure,
): Promise<void> {
  const value: Reflection = {
    task: firstChars(task, MAX_TASK_CHARS),
    summary: firstChars(summary, MAX_SUMMARY_CHARS),
    at: at.toISOString(),
  };
  const key = createHash("sha256")
    .update(JSON.stringify([value.task, value.summary]))
    .digest("hex");
  await items.put(shelfOf(place), { key, value });
  const old = (await items.list(shelfOf(place))).slice(MAX_KEPT);
  for (const item of old) await items.delete(shelfOf(place), item.key);
}

/** Returns a `<prior_reflections>` block, newest first, or undefined if there are no similar tasks. */
export async function priorReflections(
  items: ItemStore,
  place: ReflectionScope,
  task: string,
): Promise<string | undefined> {
  const words = [...new Set(task.toLowerCase().match(WORD))].slice(0, MAX_WORDS);
  if (words.length < MIN_WORDS) return undefined;
  const alike = (await items.list(shelfOf(place))).flatMap(({ value }) => {
    const reflection = Reflection.safeParse(value).data;
    return reflection && isAlike(reflection, words) ? [markdown(reflection)] : [];
  });
  let told: string | undefined;
  for (let count = 1; count <= Math.min(alike.length, MAX_TOLD); count++) {
    const text = xmlTag("prior_reflections", [INTRODUCTION, ...alike.slice(0, count)].join("\n\n"));
    if (Buffer.byteLength(text) > MAX_TOLD_BYTES) break;
    told = text;
  }
  return told;
}

const INTRODUCTION = "This went wrong with similar tasks before. Do not make the same mistakes again.";

function isAlike({ task, summary }: Reflection, words: readonly string[]): boolean {
  const text = `${task}\n${summary}`.toLowerCase();
  return words.filter((word) => isIn(text, word)).length >= MIN_WORDS;
}

const markdown = ({ task, summary, at }: Reflection) =>
  `## Failed on ${at.slice(0, 10)}\n\n### The task\n\n${task}\n\n### What went wrong\n\n${summary}`;

const shelfOf = ({ owner, agent }: ReflectionScope): Shelf => ({ owner, of: { agent }, kind: "reflections" });
