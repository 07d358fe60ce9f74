// Teams: an agent gives tasks to others, each on a thread of its own, and a child reports when it has finished. Active
// where the agent may give tasks to somebody, and in every run that works for another one; it costs nothing otherwise.

import { z } from "zod";
import { defineHook } from "../../core/hook.ts";
import { unanswered } from "../../core/messages.ts";
import type { SystemBlock } from "../../core/model.ts";
import { countUsage } from "../../core/run.ts";
import { type Stream, tap } from "../../core/stream.ts";
import type { Run, ToolResult } from "../../core/tool.ts";
import { xmlTag } from "../../lib/text.ts";
import { goesOnElsewhere } from "./await-child.ts";
import { type Child, childrenOf, hasEnded } from "./child.ts";
import { CANCELLED, completionProtocol, settle, taskComplete } from "./result.ts";
import { available, lineOf, type Team } from "./subagent-config.ts";
import { cancelTask, checkTasks, delegate, listAgents, startTask, task, waitTasks } from "./tools.ts";

const TOOLS = [listAgents, delegate, task, startTask, checkTasks, waitTasks, cancelTask] as const;
/** The tools by which an agent gives tasks. */
const WAYS = ["delegate", "task", "start_task"] as const;
/** Their children work for the run alone: what they use is the run's. */
const FOREGROUND: ReadonlySet<string> = new Set(["delegate", "task"]);

export const subagents = defineHook({
  name: "subagents",
  tools: ["list_agents", "delegate", "task", "start_task", "check_tasks", "wait_tasks", "cancel_task"],
  fixedTools: ["task_complete"],
  options: z.strictObject({
    concurrency: z.int().min(1).max(16).default(8).describe("Tasks of one call that are worked on at once."),
  }),
  activeByDefault: () => true,
  create({ concurrency }, { agent, subagents, items }) {
    const team = subagents && agent.subagents.length > 0 && { agent, subagents, items, concurrency };
    const asChild = {
      name: "subagents",
      tools: ({ lineage }: Run) => (lineage ? [taskComplete] : []),
      modifyRequest: <R extends { readonly system: readonly SystemBlock[] }>(request: R, run: Run) =>
        run.lineage ? { ...request, system: [...request.system, completionProtocol] } : request,
    };
    if (!team) return asChild;
    return {
      name: "subagents",

      tools: (run) => [
        ...asChild.tools(run),
        ...(mayDelegate(team, run) ? TOOLS.map((make) => make(team)) : []),
      ],

      async *beforeAgent(run) {
        for (const child of abandoned(run)) {
          await cancel(team, child, run);
          yield* settle(team, { child, report: CANCELLED }, run);
        }
      },

      modifyRequest(request, run) {
        const asked = asChild.modifyRequest(request, run);
        const ways = mayDelegate(team, run) ? WAYS.filter((name) => run.tools.has(name)) : [];
        if (ways.length === 0) return asked;
        return { ...asked, system: [...asked.system, agentsBlock(team, ways)] };
      },

      wrapToolCall(request, next, run) {
        const stream = next(request);
        return FOREGROUND.has(request.call.name) ? counted(stream, run) : stream;
      },

      async afterAgent(_, run) {
        if (goesOnElsewhere(run.signal)) return;
        for (const child of abandoned(run)) await cancel(team, child, run);
      },
    };
  },
});

/** "a, b or c" */
const oneOf = (names: readonly string[]) => names.join(", ").replace(/, (?=[^,]+$)/, " or ");

const mayDelegate = ({ agent }: Team, { lineage }: Run) => (lineage?.depth ?? 0) < agent.max_delegation_depth;

function agentsBlock(team: Team, ways: readonly string[]): SystemBlock {
  const lines = available(team).map(lineOf).join("\n");
  const text = `You may give tasks to these agents, with ${oneOf(ways)}:\n${lines}`;
  return { id: "available_agents", text: xmlTag("available_agents", text), cache: "dynamic" };
}

/** Children in the foreground that are not at their end, though the call that waits for them is. */
function abandoned(run: Run): Child[] {
  const open = new Set(unanswered(run.messages).map(({ id }) => id));
  return childrenOf(run).filter((child) => !child.background && !hasEnded(child) && !open.has(child.call_id));
}

async function cancel({ subagents }: Team, { thread_id }: Child, run: Run): Promise<void> {
  const newest = await subagents.newest(run.owner, thread_id);
  if (newest) await subagents.stop(run.owner, newest, "cancel");
}

/** Counts what children use as the run's own, before outer hooks see the event. */
const counted = (stream: Stream<ToolResult>, run: Run) =>
  tap(stream, ({ event, path, data }) => {
    if (event === "on_chat_model_end" && path && data.usage) countUsage(run, data.usage);
  });
