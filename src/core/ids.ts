// Ids: random with a prefix; clients may choose those of threads.

import { z } from "zod";
import { randomId } from "../lib/random-id.ts";

export const newThreadId = () => `th_${randomId()}`;
export const newRunId = () => `run_${randomId()}`;
export const newMessageId = () => `msg_${randomId()}`;

/** An id that a client may choose: no character has a meaning in a path, a key or a file name. */
export const Id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 characters out of A-Z a-z 0-9 _ -");

/** Who owns a thread or backend. Every store and backend method takes it; nothing is found without it. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}
