// The types of numbers in the settings.

import { z } from "zod";
import { Duration } from "../../lib/units.ts";

export const MIB = 1024 * 1024;
export const count = z.int().min(1);

/** An interval or a timeout, which must be greater than zero. */
export const Interval = Duration.refine((ms) => ms > 0, "must be longer than 0 s");
