// How a child says what has become of its task. Its run ends with that.

import type { SystemBlock } from "../../core/model.ts";
import { setState } from "../../core/run.ts";
import { defineTool, type Run, type Tool } from "../../core/tool.ts";
import { tagged } from "../../lib/tagged.ts";
import { asCompletion, CompletionFields } from "./completion.ts";
import { COMPLETION, completionIn } from "./outcome.ts";

const reporting = defineTool({
  name: "task_complete",
  description:
    "Ends your work and reports it to the agent that gave you the task. Call it once, when you have finished or cannot go on.",
  parameters: CompletionFields,
  annotations: { idempotent: true, category: "plan", requiresPermission: false },
  async *execute(report, _, run) {
    if (!isComplete(run)) yield* setState(run, COMPLETION, { ...report, run_id: run.id });
    return { status: "done", output: "Reported.", endsRun: true };
  },
});

export const taskComplete: Tool = { ...reporting, parse: (args) => reporting.parse(asCompletion(args)) };

/** The first report counts. */
const isComplete = (run: Run) => completionIn(Object.fromEntries(run.state))?.run_id === run.id;

export const completionProtocol: SystemBlock = {
  id: "completion_protocol",
  text: tagged(
    "completion_protocol",
    `Another agent has given you a task; nobody else reads what you write.
- Work on it until it is done or cannot be done, then call task_complete, once.
- Report truthfully: status failed when the task was not done. The summary is all that the other agent learns.`,
  ),
  cache: "static",
};
