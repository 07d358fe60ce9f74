// What a child knows of the family.

import type { ToolCall } from "../../core/message.ts";
import type { Lineage } from "../../core/records.ts";
import { rootOf } from "../../core/run.ts";
import type { Run } from "../../core/tool.ts";
import type { Child } from "./children.ts";
import { backendOf, type Team } from "./team.ts";

export function lineageOf(team: Team, child: Child, call: ToolCall, run: Run): Lineage {
  const { agent, name, background } = child;
  const backend_of = backendOf(agent, team, run.lineage?.backend_of);
  return {
    parent: { thread_id: run.threadId, run_id: run.id, call_id: call.id, background },
    root: rootOf(run),
    depth: (run.lineage?.depth ?? 0) + 1,
    name,
    ...(backend_of === undefined ? {} : { backend_of }),
  };
}
