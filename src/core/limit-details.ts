// What a run says of the limit at which it ended.

import { z } from "zod";

export const LimitDetails = z
  .object({
    message: z.string(),
    limit: z
      .string()
      .describe(
        "A quota, such as `cost_per_day`, or `max_iterations`, `budgets.tokens`, `budgets.seconds`, `loop_detection`, `stall_detection`.",
      ),
    of: z.enum(["tenant", "user"]).optional().describe("Of a quota: whose it is."),
    most: z.number().optional().describe("In the unit in which the limit is configured."),
    used: z.number().optional(),
    left: z.number().optional(),
    currency: z.string().optional().describe("Of money, if the server's settings name it."),
    resets_at: z.iso.datetime().optional(),
  })
  .meta({ id: "LimitDetails" });
export type LimitDetails = z.infer<typeof LimitDetails>;
