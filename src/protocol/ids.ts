// The ids that clients may choose, and the owners of what they name.

import { z } from "zod";

/** An id that a client may choose. None of its characters has a special meaning in a path, a key or a file name. */
export const Id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 characters out of A-Z a-z 0-9 _ -");

/** Owner of a thread or backend. Every method of a store or backend takes it, and finds nothing without it. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}
