// The ids that clients can choose, and the owners of the things that they identify.

import { z } from "zod";

/** An id that a client can choose. None of its characters has a special meaning in a path, a key or a file name. */
export const Id = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, "must be 1 to 128 characters from A-Z, a-z, 0-9, _ and -");

/** The owner of a thread or backend. Every method of a store or backend requires it and finds nothing without it. */
export interface Owner {
  readonly tenant: string;
  readonly user: string;
}
