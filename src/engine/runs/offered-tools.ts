// Lists the tools that an agent offers in a user's runs, without starting a run or a sandbox.

import { keptOverrides } from "../../agent/agents/overrides.ts";
import type { AgentDefinition } from "../../agent/core/agent.ts";
import type { Backend, BackendConfig } from "../../agent/core/backend.ts";
import { AppError } from "../../agent/core/errors.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import { OPEN_ENDED } from "../../agent/core/open-interrupts.ts";
import { unrecordedRun } from "../../agent/core/run.ts";
import { type Agent, toolsOffered } from "../../agent/core/runnable-agent.ts";
import type { Tool } from "../../agent/core/tool.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { freeTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { RunServices } from "./services.ts";

export interface Offer extends Pick<Agent, "absence"> {
  /** The tools, sorted by name. */
  readonly tools: readonly Tool[];
}

/** Returns the tools that an agent offers its model when a run of the user begins. */
export async function offerOf(
  { agents, stores: { items }, subagents, tenantTools }: RunServices,
  owner: Owner,
  definition: AgentDefinition,
): Promise<Offer> {
  const { name } = definition;
  const [tools = [], user] = await Promise.all([
    tenantTools?.(owner, name),
    keptOverrides(items, owner, name),
  ]);
  // Each agent gets its own free tick of the event loop, because a caller may request all agents at once.
  await freeTick(owner.tenant);
  const backend = definition.backend && unopened(definition.backend);
  const agent = await agents.build(definition, { tools, items, backend, subagents }, { user });
  const place = { owner, threadId: newThreadId(), signal: new AbortController().signal };
  const run = unrecordedRun(place, { interrupts: OPEN_ENDED, ...agent });
  return { tools: toolsOffered(agent, run), ...omitUndefined({ absence: agent.absence }) };
}

/** Throws `invalid_request` for an unknown agent. */
export async function offeredTools(
  services: RunServices,
  owner: Owner,
  name: string,
): Promise<readonly Tool[]> {
  return (await offerOf(services, owner, services.agents.find(name))).tools;
}

/** Returns a backend for tools that are never called. */
export function unopened({ type }: BackendConfig): Backend {
  const refuse = () => {
    throw new AppError("unavailable", "This workspace is not open.");
  };
  return {
    type,
    workdir: "/",
    exec: refuse,
    stat: refuse,
    read: refuse,
    write: refuse,
    edit: refuse,
    list: refuse,
    glob: refuse,
    grep: refuse,
    remove: refuse,
  };
}
