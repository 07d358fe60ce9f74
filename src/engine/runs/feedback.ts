// What a user thinks of an agent's answers, with words. Items beside the thread, which are deleted with it.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type Item, type ItemStore, MAX_KEY_CHARS, type Shelf } from "../../agent/core/items.ts";
import type { ThreadStore } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";

/** Of a thread. */
export const MAX_RATED = 100;
const MAX_COMMENT_CHARS = 2_000;

export const Rating = z.strictObject({
  rating: z.enum(["up", "down"]),
  comment: z
    .string()
    .trim()
    .min(1)
    .max(MAX_COMMENT_CHARS)
    .optional()
    .describe("Reason for the rating, in the user's words."),
});
export type Rating = z.infer<typeof Rating>;

export const Feedback = z
  .object({ message_id: z.string(), ...Rating.shape, updated_at: z.iso.datetime() })
  .meta({ id: "Feedback" });
export type Feedback = z.infer<typeof Feedback>;

const PREFIX = "feedback:";
const shelfOf = (owner: Owner, thread: string): Shelf => ({ owner, of: { thread }, kind: "settings" });
/** Longer ids are those of no message that can be rated. */
const isRatable = (message: string) => PREFIX.length + message.length <= MAX_KEY_CHARS;

/**
 * Rates an answer, in place of what was said of it before. Throws `not_found` without the message, `invalid_request` when it is
 * no answer of an agent, `limit_exceeded` when the thread has `MAX_RATED` others.
 */
export async function rate(
  { threads, items }: { readonly threads: ThreadStore; readonly items: ItemStore },
  owner: Owner,
  { thread, message: id }: { readonly thread: string; readonly message: string },
  rating: Rating,
): Promise<Feedback> {
  const message = isRatable(id) ? await threads.message(owner, thread, id) : undefined;
  if (!message) throw new AppError("not_found", `The thread has no message \`${id}\`.`);
  if (message.role !== "assistant")
    throw new AppError(
      "invalid_request",
      `Only answers of an agent can be rated; \`${id}\` is a message of the role \`${message.role}\`.`,
    );
  const shelf = shelfOf(owner, thread);
  const others = (await feedbackOf(items, owner, thread)).filter(({ message_id }) => message_id !== id);
  if (others.length >= MAX_RATED)
    throw new AppError(
      "limit_exceeded",
      `A thread has at most ${MAX_RATED} rated answers. Remove one rating first.`,
    );
  // Without a version it is written in any case.
  return feedbackIn((await items.put(shelf, { key: PREFIX + id, value: rating })) as Item);
}

/** Last changed first. */
export async function feedbackOf(items: ItemStore, owner: Owner, thread: string): Promise<Feedback[]> {
  const all = await items.list(shelfOf(owner, thread));
  return all.filter(({ key }) => key.startsWith(PREFIX)).map(feedbackIn);
}

/** False when there is none. */
export const removeRating = (
  items: ItemStore,
  owner: Owner,
  { thread, message }: { readonly thread: string; readonly message: string },
): Promise<boolean> => items.delete(shelfOf(owner, thread), PREFIX + message);

const feedbackIn = ({ key, value, updated_at }: Item): Feedback => ({
  message_id: key.slice(PREFIX.length),
  ...(value as Rating),
  updated_at,
});
