// The agents that an agent may give tasks to, and what is needed for it.

import type { AgentDefinition } from "../../core/agent.ts";
import type { ItemStore } from "../../core/items.ts";
import type { AgentSummary, Subagents } from "../../core/subagents.ts";

export interface Team {
  /** Who gives the tasks. */
  readonly agent: AgentDefinition;
  readonly subagents: Subagents;
  readonly items: ItemStore | undefined;
  /** Children that one call has at work at once. */
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

/** By name, each with its description. Those that there are no more are left out. */
export function available({ agent, subagents }: Team): AgentSummary[] {
  const names = members(agent).flatMap(({ name }) => (isSame(name, agent.name) ? [] : [name]));
  return subagents.describe([...new Set(names)]).sort((a, b) => (a.name < b.name ? -1 : 1));
}

export const lineOf = ({ name, description }: AgentSummary) =>
  `- ${name}${description ? `: ${description}` : ""}`;

/** The agent that is meant, in any case; else a sentence that says who there is. */
export function memberCalled(name: string, team: Team): { member: Member } | { fault: string } {
  if (isSame(name, team.agent.name))
    return { fault: `You are \`${team.agent.name}\` yourself: do it, or give it to another agent.` };
  const there = available(team);
  const found = there.find((each) => isSame(each.name, name));
  const member = found && members(team.agent).find((each) => each.name === found.name);
  if (member) return { member };
  const names = there.map((each) => `\`${each.name}\``).join(", ");
  return { fault: `There is no agent \`${name}\` that you may give tasks to. There are: ${names}.` };
}

/** The agent in whose backend a member works; nothing when it is its own. */
export function backendOf(name: string, { agent }: Team, backendOfParent: string | undefined) {
  const member = members(agent).find((each) => each.name === name);
  return agent.backend && member?.backend === "shared" ? (backendOfParent ?? agent.name) : undefined;
}
