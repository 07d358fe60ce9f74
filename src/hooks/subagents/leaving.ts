// Why a run ends here: for good, or because another process goes on with it.

import { hasCode } from "../../core/errors.ts";

/** What such a run has begun is left as it is: whoever goes on with the run goes on with that. */
export function goesOnElsewhere({ reason }: AbortSignal): boolean {
  return hasCode(reason, "lease_lost") || hasCode(reason, "shutting_down");
}
