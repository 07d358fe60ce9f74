// The hosts with private addresses that tools may call.

import { z } from "zod";
import { hostList } from "../../lib/hosts.ts";

/** A comma-separated list of `host` or `host:port`. */
export const ToolHosts = z.string().superRefine((text, context) => {
  try {
    hostList(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : "cannot be read";
    context.addIssue({ code: "custom", message: `must be a list such as tools.internal:8080: it ${why}` });
  }
});
