// Drives one claimed run from its first event to its last. The run belongs to the server: nobody needs to be
// watching, and whoever watches reads the log.

import type { Agent, AgentDefinition } from "../core/agent.ts";
import type { Backend, BackendPool } from "../core/backend.ts";
import { AppError, type ErrorInfo } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import { failedEnd, type Opening } from "../core/grammar.ts";
import { runAgent } from "../core/loop.ts";
import { toolMessage } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import type { RunInput } from "../core/run.ts";
import type { Claim, RunRecord, Stores } from "../core/stores.ts";
import type { TraceRecorder } from "../core/trace.ts";
import { announceEnd, announceStart } from "./announce.ts";
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
  const { bus, events } = services.stores;
  const { run, lease } = claim;
  const writer = createWriter(events, lease);
  announceStart(bus, lease.owner, run);
  let last: StreamEvent | undefined;
  try {
    const { agent, input } = await load(claim, services, control);
    if (run.attempt > 1) await beginIfNobodyDid(claim, services, writer, agent.model.name);
    for await (const event of runAgent(agent, input)) {
      await writer.write(event);
      if (event.event === "run_resumed") await closeLeftovers(claim, services, writer, input);
      last = event;
    }
    announceEnd(bus, lease.owner, run, last?.event === "done" ? last.data.status : "error");
  } catch (error) {
    if (!isLost(error)) await settleAsFailed(claim, services, AppError.from(error).toInfo());
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

/** What the dead attempt left open is closed before the new one goes on, which learns which calls had begun. */
async function closeLeftovers(
  { lease }: Claim,
  { stores }: DriveServices,
  writer: RunWriter,
  { begun, messages }: Loaded["input"],
): Promise<void> {
  const { openings, begun: calls, isWhole } = await leftovers(stores.events, lease);
  for (const call of calls) begun.add(call);
  // Where the log does not tell, every call that has no result may have begun.
  if (!isWhole) for (const call of unanswered(messages)) begun.add(call.id);
  if (openings.length > 0) await writer.write(...openings.map(givenUp));
}

/** The end of what a dead attempt had begun. A message starts again; a call is run again, or answered. */
function givenUp(opening: Opening): StreamEvent {
  if (opening.event === "on_chat_model_start")
    return { event: "message_discard", data: { message_id: opening.data.message_id } };
  const { call_id } = opening.data;
  return { event: "on_tool_end", name: opening.name, data: { call_id, interrupted: true, duration_ms: 0 } };
}

/** What went wrong outside the loop still ends the run as it should: brackets closed, calls answered. */
async function settleAsFailed(claim: Claim, services: DriveServices, error: ErrorInfo): Promise<void> {
  const { lease, run, request } = claim;
  const { events, threads } = services.stores;
  const writer = createWriter(events, lease);
  await beginIfNobodyDid(claim, services, writer, request.model ?? "");
  const { openings } = await leftovers(events, lease);
  const calls = unanswered(await threads.messages(lease.owner, lease.thread_id));
  const results = calls.map((call) => toolMessage(call, "", `Outcome unknown: ${error.message}`));
  await writer.write(
    ...openings.map((opening) => failedEnd(opening, error)),
    ...results.map((message): StreamEvent => ({ event: "on_message", data: { message } })),
    { event: "error", data: error },
  );
  announceEnd(services.stores.bus, lease.owner, run, "error");
}

/** A process may have died before it wrote the first event; a run begins with `run_start` all the same. */
async function beginIfNobodyDid(
  { lease, run }: Claim,
  { stores }: DriveServices,
  writer: RunWriter,
  model: string,
): Promise<void> {
  const { last } = await stores.events.bounds(lease);
  if (last === 0) await writer.write(runStart(run, model));
}

function runStart({ agent }: RunRecord, model: string): StreamEvent {
  return { event: "run_start", data: { agent, model, attempt: 1 } };
}

/** Nothing more can be written for this run. */
const isLost = (error: unknown) => error instanceof AppError && error.code === "lease_lost";
