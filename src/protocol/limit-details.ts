// The limit that ended a run, as shown in `done` and in the run.

import { z } from "zod";

export const LimitDetails = z
  .object({
    message: z.string().describe("The same text as the `message` of `done`."),
    limit: z
      .string()
      .describe(
        "The limit that was reached: a quota such as `cost_per_day`, or `max_iterations`, `budgets.tokens`, `budgets.seconds`, `loop_detection`, `stall_detection`.",
      ),
    of: z.enum(["tenant", "user"]).optional().describe("Owner of the quota."),
    most: z.number().optional().describe("Value of the limit, in the unit in which it is configured."),
    used: z.number().optional(),
    left: z.number().optional(),
    currency: z
      .string()
      .optional()
      .describe("Currency of a cost limit. Absent if no currency is configured."),
    resets_at: z.iso.datetime().optional(),
  })
  .meta({ id: "LimitDetails" });
export type LimitDetails = z.infer<typeof LimitDetails>;
