// The flow rules that apply to a run: the rules of its agent and of the agents that it works for. A hook sets them before
// the loop begins, and subagents inherit them.

import type { FlowRule } from "./flow.ts";
import { valueKey } from "./tool.ts";

export const FLOW_RULES = valueKey<readonly FlowRule[]>("flow rules");
