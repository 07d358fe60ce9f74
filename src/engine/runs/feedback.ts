// Users' ratings of an agent's answers, with comments. They are stored as items of the thread and deleted with it.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type Item, type ItemStore, MAX_KEY_CHARS, type Shelf } from "../../agent/core/items.ts";
import type { ThreadStore } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";

/** The maximum number of rated answers per thread. */
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
/** A longer id cannot belong to a message that can be rated. */
const isRatable = (message: string) => PREFIX.length + message.length <= MAX_KEY_CHARS;

/**
 * Rates an answer and replaces an earlier rating. Throws `not_found` if the message does not exist, `invalid_request`
 * if it is not an agent's answer, and `limit_exceeded` if the thread has `MAX_RATED` other ratings.
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
      `Only an agent's answers can be rated; \`${id}\` is a message with the role \`${message.role}\`.`,
    );
  const shelf = shelfOf(owner, thread);
  const others = (await feedbackOf(items, owner, thread)).filter(({ message_id }) => message_id !== id);
  if (others.length >= MAX_RATED)
    throw new AppError(
      "limit_exceeded",
      `A thread can have at most ${MAX_RATED} rated answers. Remove one rating first.`,
    );
  // Without a version, the write is unconditional.
  return feedbackIn((await items.put(shelf, { key: PREFIX + id, value: rating })) as Item);
}

/** Returns the ratings, most recently changed first. */
export async function feedbackOf(items: ItemStore, owner: Owner, thread: string): Promise<Feedback[]> {
  const all = await items.list(shelfOf(owner, thread));
  return all.filter(({ key }) => key.startsWith(PREFIX)).map(feedbackIn);
}

/** Returns false if there is no rating. */
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
