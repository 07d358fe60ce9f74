// The ids that clients may choose, and who owns what they name.

import { z } from "zod";

/** An id that a client may choose: no character has a meaning in a path, a key or a file name. */
export const Id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 characters out of A-Z a-z 0-9 _ -");

/** Who owns a thread or backend. Every store and backend method takes it; nothing is found without it. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}
