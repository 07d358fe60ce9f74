// The current time, which models do not know.

import { z } from "zod";
import { defineTool, failed } from "../../core/tool.ts";

const DEFAULT_ZONE = "UTC";

export const currentDatetime = defineTool({
  name: "current_datetime",
  description: "Tells the current date, weekday and time, in UTC and in a time zone of your choice.",
  parameters: z.object({
    time_zone: z.string().max(64).default(DEFAULT_ZONE).describe("Its IANA name, such as Europe/Berlin."),
  }),
  annotations: { readOnly: true, category: "read", requiresPermission: false },
  execute({ time_zone }) {
    const now = new Date();
    try {
      const there = new Intl.DateTimeFormat("en-GB", {
        dateStyle: "full",
        timeStyle: "long",
        timeZone: time_zone,
      }).format(now);
      return JSON.stringify({ utc: now.toISOString(), time_zone, there });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return failed(`There is no time zone \`${time_zone}\`. Use an IANA name such as Europe/Berlin.`);
    }
  },
});
