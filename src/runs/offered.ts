// What an agent's model is offered when this user talks to it: read off the agent as it would be built for a run.

import { keptOverrides } from "../agents/kept-overrides.ts";
import type { Backend, BackendConfig } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import { newThreadId, type Owner } from "../core/ids.ts";
import { OPEN_ENDED } from "../core/interrupts.ts";
import { toolsOffered } from "../core/offer.ts";
import { unrecordedRun } from "../core/run.ts";
import { given } from "../lib/given.ts";
import type { DriveServices } from "./services.ts";

/** Names, sorted. No sandbox is started. Throws `invalid_request` for an agent that does not exist. */
export async function offeredTools(
  owner: Owner,
  name: string,
  { agents, stores: { items }, subagents, tenantTools }: DriveServices,
): Promise<string[]> {
  const definition = agents.find(name);
  const [tools = [], user] = await Promise.all([
    tenantTools?.(owner, name),
    keptOverrides(items, owner, name),
  ]);
  const backend = definition.backend && unopened(definition.backend);
  const agent = agents.build(definition, { tools, items, ...given({ backend, subagents }) }, { user });
  const place = { owner, threadId: newThreadId(), signal: new AbortController().signal };
  const run = unrecordedRun(place, { interrupts: OPEN_ENDED, ...agent });
  return toolsOffered(agent, run).map((tool) => tool.name);
}

/** In the place of the agent's backend, for tools that are listed and never called. */
function unopened({ type }: BackendConfig): Backend {
  const refuse = () => {
    throw new AppError("unavailable", "This workspace is not open.");
  };
  return {
    ...{ type, workdir: "/", exec: refuse, stat: refuse, read: refuse, write: refuse, edit: refuse },
    ...{ list: refuse, glob: refuse, grep: refuse, remove: refuse },
  };
}
