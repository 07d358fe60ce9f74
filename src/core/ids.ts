// The ids of the language. Ours are random and prefixed; a thread's may be chosen by the client.

import { z } from "zod";
import { randomId } from "../lib/random-id.ts";

export const newThreadId = () => `th_${randomId()}`;
export const newRunId = () => `run_${randomId()}`;
export const newMessageId = () => `msg_${randomId()}`;

/** What a client may choose for a thread: nothing that means something in a path, a key or a file name. */
export const Id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 characters out of A-Z a-z 0-9 _ -");

/** Whose a thing is. Every store and backend method takes it; nothing is found without it. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}
