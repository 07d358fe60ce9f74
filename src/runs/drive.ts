// Drives one claimed run from its first event to its last. The run belongs to the server: nobody needs to be
// watching, and whoever watches reads the log.

import type { Agent, AgentDefinition } from "../core/agent.ts";
import type { Backend, BackendPool } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import { runAgent } from "../core/loop.ts";
import type { RunInput } from "../core/run.ts";
import type { Claim, Stores } from "../core/stores.ts";
import type { TraceRecorder } from "../core/trace.ts";
import { leftovers } from "./leftovers.ts";
import { createWriter, type RunWriter } from "./writer.ts";

/** Where runs find their agents. */
export interface AgentSource {
  /** The default agent for no name. Throws `invalid_request` for a name that there is not. */
  find(name: string | undefined): AgentDefinition;
  /** Throws `invalid_request` for a model that a run of this agent may not ask for. */
  checkModel(definition: AgentDefinition, model: string): void;
  /** An agent for one run. */
  build(
    definition: AgentDefinition,
    services: { backend?: Backend; recorder?: TraceRecorder },
    overrides: { model?: string },
  ): Agent;
}

export interface DriveServices {
  readonly stores: Stores;
  readonly agents: AgentSource;
  readonly backends: BackendPool;
  readonly recorder?: TraceRecorder;
}

/** How a running run is reached from outside. */
export interface Control {
  readonly signal: AbortSignal;
  interruptRequested(): boolean;
}

/**
 * Resolves once the run is settled. Throws when it could not be, because the lease is lost or the store is
 * gone: the run is then another process's, or the next one's.
 */
export async function drive(claim: Claim, services: DriveServices, control: Control): Promise<void> {
  const writer = createWriter(services.stores.events, claim.lease);
  let opened = false;
  try {
    const { agent, input } = await load(claim, services, control);
    for await (const event of runAgent(agent, input)) {
      await writer.write(event);
      opened = true;
      if (event.event === "run_resumed") await closeLeftovers(claim, services, writer, input.begun);
    }
  } catch (error) {
    if (isLost(error)) throw error;
    const events: StreamEvent[] = [{ event: "error", data: AppError.from(error).toInfo() }];
    await writer.write(...(opened ? [] : [openingOf(claim)]), ...events);
    throw error;
  }
}

interface Loaded {
  readonly agent: Agent;
  readonly input: RunInput & { readonly begun: Set<string> };
}

async function load(claim: Claim, services: DriveServices, control: Control): Promise<Loaded> {
  const { lease, run, request } = claim;
  const { stores, agents, backends, recorder } = services;
  const definition = agents.find(run.agent);
  const [messages, state, backend] = await Promise.all([
    stores.threads.messages(lease.owner, lease.thread_id),
    stores.threads.state(lease.owner, lease.thread_id),
    definition.backend ? backends.get(lease.owner, definition.backend) : undefined,
  ]);
  const parts = { ...(backend ? { backend } : {}), ...(recorder ? { recorder } : {}) };
  const agent = agents.build(definition, parts, request.model === undefined ? {} : { model: request.model });
  const input = {
    id: run.id,
    threadId: lease.thread_id,
    owner: lease.owner,
    attempt: run.attempt,
    signal: control.signal,
    messages,
    state: new Map(Object.entries(state)),
    settings: request.settings,
    input: request.input,
    begun: new Set<string>(),
    inbox: () => stores.runs.inbox(lease),
    interruptRequested: control.interruptRequested,
    ...(backend ? { backend } : {}),
  };
  return { agent, input };
}

/** What the dead attempt left open is closed before the new one goes on; `begun` learns which calls had begun. */
async function closeLeftovers(
  { lease, run }: Claim,
  { stores }: DriveServices,
  writer: RunWriter,
  begun: Set<string>,
): Promise<void> {
  const { calls, closing } = await leftovers(stores.events, lease, run.attempt);
  for (const call of calls) begun.add(call);
  if (closing.length > 0) await writer.write(...closing);
}

function openingOf({ run }: Claim): StreamEvent {
  if (run.attempt > 1) return { event: "run_resumed", data: { attempt: run.attempt } };
  return { event: "run_start", data: { agent: run.agent, model: "", attempt: 1 } };
}

/** Nothing more can be written for this run. */
const isLost = (error: unknown) =>
  error instanceof AppError && (error.code === "lease_lost" || error.code === "unavailable");
