// The agents that an agent may delegate tasks to.

import type { AgentDefinition } from "../../core/agent.ts";
import type { AgentSummary, Subagents } from "../../core/hook.ts";
import type { ItemStore } from "../../core/items.ts";
import type { TaskBoard } from "../../core/task-board.ts";

export interface SubagentConfig {
  /** The agent that delegates. */
  readonly agent: AgentDefinition;
  readonly subagents: Subagents;
  readonly items: ItemStore | undefined;
  /** The board where children claim their tasks. */
  readonly tasks: TaskBoard | undefined;
  /** The maximum number of children of one call that run in parallel. */
  readonly concurrency: number;
}

interface Member {
  readonly name: string;
  readonly backend: "shared" | "own";
}

function members({ subagents }: AgentDefinition): Member[] {
  return subagents.map((entry) =>
    typeof entry === "string"
      ? { name: entry, backend: "shared" }
      : { name: entry.agent, backend: entry.backend },
  );
}

const isSame = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();

/** Returns the agents, sorted by name, without agents that no longer exist. */
export function available({ agent, subagents }: SubagentConfig): AgentSummary[] {
  const names = members(agent).flatMap(({ name }) => (isSame(name, agent.name) ? [] : [name]));
  return subagents.describe([...new Set(names)]).sort((a, b) => (a.name < b.name ? -1 : 1));
}

export const lineOf = ({ name, description }: AgentSummary) =>
  `- ${name}${description ? `: ${description}` : ""}`;

/** Finds an agent by name, ignoring case. `fault` lists the available agents for the model. */
export function memberCalled(name: string, config: SubagentConfig): { member: Member } | { fault: string } {
  const { agent } = config;
  if (isSame(name, agent.name))
    return { fault: `You are \`${agent.name}\` yourself. Do the task, or give it to another agent.` };
  const agents = available(config);
  const found = agents.find((each) => isSame(each.name, name));
  const member = found && members(agent).find((each) => each.name === found.name);
  if (member) return { member };
  const names = agents.map((each) => `\`${each.name}\``).join(", ");
  return { fault: `There is no agent \`${name}\` that you may give tasks to. Use one of: ${names}.` };
}

/** Returns the agent whose backend a member shares, or undefined if the member has a separate backend. */
export function backendOf(name: string, { agent }: SubagentConfig, backendOfParent: string | undefined) {
  const member = members(agent).find((each) => each.name === name);
  return agent.backend && member?.backend === "shared" ? (backendOfParent ?? agent.name) : undefined;
}
