// Lets an agent delegate tasks to other agents. Each subagent works in its own thread and reports when it has finished. The
// hook is active if the agent has `subagents`, and in every run that works for another run.

import { z } from "zod";
import { xmlTag } from "../../../lib/text.ts";
import { isHandover } from "../../core/errors.ts";
import { defineHook } from "../../core/hook.ts";
import { unanswered } from "../../core/message.ts";
import type { SystemBlock } from "../../core/model.ts";
import type { Run } from "../../core/tool.ts";
import { inheritedFlow } from "../permissions/flow/inherited.ts";
import { boardFor } from "./board.ts";
import { type Child, childrenOf, hasEnded } from "./child.ts";
import { CANCELLED, completionProtocol, recordResult, taskComplete } from "./result.ts";
import { available, lineOf, type SubagentConfig } from "./subagent-config.ts";
import { cancelTask, checkTasks, delegate, listAgents, startTask, task, waitTasks } from "./tools.ts";

const TOOLS = [listAgents, delegate, task, startTask, checkTasks, waitTasks, cancelTask] as const;
const DELEGATING_TOOLS = ["delegate", "task", "start_task"] as const;

export const subagents = defineHook({
  name: "subagents",
  tools: ["list_agents", "delegate", "task", "start_task", "check_tasks", "wait_tasks", "cancel_task"],
  fixedTools: ["task_complete"],
  options: z.strictObject({
    concurrency: z
      .int()
      .min(1)
      .max(16)
      .default(8)
      .describe("Maximum number of tasks from one call that run at the same time. The others wait."),
  }),
  activeByDefault: () => true,
  // An agent must not be able to escape its parent's rules with `hooks: { subagents: false }`.
  bindsSubagents: true,
  create({ concurrency }, services) {
    const { agent, subagents, items } = services;
    const inherited = inheritedFlow(services);
    if (agent.hooks.subagents === false)
      return {
        name: "subagents",
        beforeAgent: inherited.begin,
        modifyRequest: inherited.request,
        wrapToolCall: inherited.wrap,
      };
    const tasks = boardFor(services);
    const config = subagents && agent.subagents.length > 0 && { agent, subagents, items, tasks, concurrency };
    const mayDelegate = ({ lineage }: Run) => (lineage?.depth ?? 0) < agent.max_delegation_depth;
    return {
      name: "subagents",

      tools: (run) => [
        ...(run.lineage ? [taskComplete] : []),
        ...(config && mayDelegate(run) ? TOOLS.map((make) => make(config)) : []),
      ],

      async *beforeAgent(run) {
        yield* inherited.begin(run);
        if (!config) return;
        for (const child of abandoned(run)) {
          await cancel(config, child, run);
          yield* recordResult(config, { child, report: CANCELLED }, run);
        }
      },

      async modifyRequest(given, run) {
        const request = await inherited.request(given, run);
        const usable = mayDelegate(run) ? DELEGATING_TOOLS.filter((name) => run.tools.has(name)) : [];
        const blocks = [
          ...(run.lineage ? [completionProtocol] : []),
          ...(config && usable.length > 0 ? [agentsBlock(config, usable)] : []),
        ];
        return { ...request, system: [...request.system, ...blocks] };
      },

      wrapToolCall: inherited.wrap,

      async afterAgent(_, run) {
        if (!config || isHandover(run.signal)) return;
        for (const child of abandoned(run)) await cancel(config, child, run);
      },
    };
  },
});

function agentsBlock(config: SubagentConfig, tools: readonly string[]): SystemBlock {
  const lines = available(config).map(lineOf).join("\n");
  const names = tools.join(", ").replace(/, (?=[^,]+$)/, " or ");
  const text = `You can give tasks to these agents with ${names}:\n${lines}`;
  return { id: "available_agents", text: xmlTag("available_agents", text), cache: "dynamic" };
}

/** Returns the unfinished foreground children of calls that already have a result. */
function abandoned(run: Run): Child[] {
  const open = new Set(unanswered(run.messages).map(({ id }) => id));
  return childrenOf(run).filter((child) => !child.background && !hasEnded(child) && !open.has(child.call_id));
}

async function cancel({ subagents }: SubagentConfig, { thread_id }: Child, run: Run): Promise<void> {
  const newest = await subagents.newest(run.owner, thread_id);
  if (newest) await subagents.stop(run.owner, newest, "cancel");
}
