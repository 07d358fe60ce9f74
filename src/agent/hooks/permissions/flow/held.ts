// Combines the verdict of the rules and the mode with the verdict of flow rules. The stricter verdict
// applies.

import type { Mode, Verdict } from "../policy.ts";
import type { FlowVerdict } from "./verdict.ts";

export interface HeldVerdict extends Verdict {
  /** True if a flow rule asks about the call. It asks every time, even after a remembered answer. */
  readonly isHeld?: true;
}

export function held(verdict: Verdict, flow: FlowVerdict | undefined, mode: Mode): HeldVerdict {
  if (!flow || verdict.decision === "deny") return verdict;
  const why = `a flow rule ${flow.decision === "deny" ? "denies" : "asks for"} it ${flow.why}`;
  if (flow.decision === "deny") return { decision: "deny", why };
  if (mode === "dont_ask") return { decision: "deny", why: `${why}, and mode dont_ask does not ask` };
  if (verdict.decision === "allow") return { decision: "ask", why, isHeld: true };
  const { message } = verdict;
  return {
    ...verdict,
    why: `${verdict.why}; ${why}`,
    message: message === undefined ? undefined : `${message} (${why})`,
    isHeld: true,
  };
}
