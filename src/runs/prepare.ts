// What a run needs before it can be driven: its agent, its thread, and what earlier attempts and answers have left.

import { keptOverrides } from "../agents/kept-overrides.ts";
import type { AgentDefinition } from "../core/agent.ts";
import type { Backend, BackendConfig } from "../core/backend.ts";
import type { DeferredCall } from "../core/deferred-calls.ts";
import { AppError, hasCode } from "../core/errors.ts";
import type { EventName, StreamEvent } from "../core/event.ts";
import { BRACKETS, type Opening, stillOpen } from "../core/grammar.ts";
import { newThreadId, type Owner } from "../core/ids.ts";
import { OPEN_ENDED, openInterrupts } from "../core/interrupts.ts";
import { addUsage, Message, NO_USAGE, type Usage } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import { toolsOffered } from "../core/offer.ts";
import { Lineage, type RunRecord, RunRequest } from "../core/records.ts";
import { type RunInput, unrecordedRun } from "../core/run.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { Claim, EventLog, Lease, Stores } from "../core/stores.ts";
import type { Tool } from "../core/tool.ts";
import { runTrace } from "../core/trace.ts";
import { fitted } from "../lib/fitted.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { clientTool, createClientTools } from "../tools/client.ts";
import { EXPIRY, standIns } from "./deferred.ts";
import type { AgentSource, Control, DriveServices } from "./services.ts";

export interface Loaded {
  readonly agent: Agent;
  readonly input: RunInput;
  readonly options: RunOptions;
  /** To be called once a message is in the thread: a result that was delivered for it is then kept no longer. Never throws. */
  forgetDelivered(message: Message): Promise<void>;
}

const CANCELLED = AbortSignal.abort(new AppError("cancelled", "The run was cancelled."));

/** Throws `invalid_request` for an agent or a model that there is no more. */
export async function load(
  claim: Claim,
  services: DriveServices,
  control: Control,
  { begun, isWhole, usage }: Leftovers,
): Promise<Loaded> {
  const { lease, run, request } = claim;
  const { stores, agents, backends, recorder, quotas, subagents } = services;
  const { owner, thread_id } = lease;
  const known = stores.threads.state(owner, thread_id);
  const placed = known.then(async (slots) => {
    const lineage = request.lineage ?? Lineage.safeParse(slots.lineage).data;
    const definition = placedIn(agents, run.agent, lineage);
    const backend = definition.backend && (await backends.get(owner, definition.backend));
    return { lineage, definition, backend };
  });
  const [stored, thread, slots, { lineage, definition, backend }, tools = [], user] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.get(owner, thread_id),
    known,
    placed,
    services.tenantTools?.(owner, run.agent),
    keptOverrides(stores.items, owner, run.agent),
  ]);
  const messages = stored.map(withCallsAsTexts);
  const state = new Map(Object.entries(slots));
  const open = unanswered(messages).map(({ id }) => id);
  const later = await deferredOf(stores, lease, open);
  // What is kept of these goes once their answers are in the thread.
  const settled = new Set(later.keys());
  const asked = new Set(openInterrupts(state).map(({ call_id }) => call_id));
  // One that was only noted for its expiry has begun once there was an answer.
  const isToCome = (id: string) => later.has(id) && (later.get(id) !== EXPIRY || asked.has(id));

  const parts = { tools, items: stores.items, ...omitUndefined({ backend, recorder, quotas, subagents }) };
  const isOffered = (model: string) => isThere(agents, definition, model);
  const options = optionsOf(run, request, { state, isOffered });
  const built = agents.build(definition, parts, { user, ...omitUndefined({ model: options.model }) });
  const agent = { ...built, tools: [...built.tools, ...(await clientToolsOf(request, state, built.tools))] };
  const input: RunInput = {
    ...{ id: run.id, threadId: thread_id, owner, attempt: run.attempt },
    signal: request.cancel ? AbortSignal.any([control.signal, CANCELLED]) : control.signal,
    ...{ messages, state, settings: options.settings, input: request.input, usage },
    answers: request.answers ?? [],
    // Where the log does not tell, every call that has no result may have begun. A finished one's id may come again.
    begun: new Set(open.filter((id) => !isToCome(id) && (!isWhole || begun.includes(id)))),
    standIn: standIns({
      store: stores.deferredCalls,
      thread: { owner, thread_id },
      onAnswer({ call_id, state }) {
        if (state === "delivered") settled.add(call_id);
        else settled.delete(call_id);
      },
    }),
    inbox: () => stores.runs.inbox(lease),
    interruptRequested: control.interruptRequested,
    ...omitUndefined({ backend, lineage, threadMetadata: thread?.metadata }),
    ...omitUndefined({ trace: recorder && runTrace(recorder, { run_id: run.id, thread_id }) }),
  };
  return {
    agent,
    input,
    options,
    async forgetDelivered(message) {
      if (message.role !== "tool" || !settled.has(message.tool_call_id)) return;
      // The result is in the thread: where this fails, whoever looks after deferred calls finds it over.
      await stores.deferredCalls.forget({ owner, thread_id, call_id: message.tool_call_id }).catch(() => {});
    },
  };
}

/** The agent, where its work is done: a child may work where another agent does. */
function placedIn(agents: AgentSource, name: string, lineage: Lineage | undefined): AgentDefinition {
  const definition = agents.find(name);
  if (lineage?.backend_of === undefined) return definition;
  const { backend } = agents.find(lineage.backend_of);
  const { backend: _, ...rest } = definition;
  return { ...rest, ...omitUndefined({ backend }) };
}

/** Earlier versions stored calls as a provider had sent them, with numbers for names and ids, or without them. */
function withCallsAsTexts(message: Message): Message {
  const isText = (value: unknown) => typeof value === "string";
  return namesIn(message).every(isText) ? message : fitted(Message, message).value;
}

function namesIn(message: Message): readonly unknown[] {
  if (message.role === "tool") return [message.tool_call_id, message.name];
  if (message.role !== "assistant") return [];
  return (message.tool_calls ?? []).flatMap(({ id, name }) => [id, name]);
}

function isThere(agents: AgentSource, definition: AgentDefinition, model: string): boolean {
  try {
    agents.checkModel(definition, model);
    return true;
  } catch (error) {
    if (hasCode(error, "invalid_request")) return false;
    throw error;
  }
}

const isWaitedFor = ({ state }: DeferredCall) => state === "accepted" || state === "delivered";

/** The calls whose result comes later, or has come, with their tools: they are not begun again, whatever the log says. */
async function deferredOf(
  { deferredCalls }: Stores,
  { owner, thread_id }: Lease,
  calls: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(calls.map((call_id) => deferredCalls.get({ owner, thread_id, call_id })));
  return new Map(found.flatMap((call) => (call && isWaitedFor(call) ? [[call.call_id, call.tool]] : [])));
}

/** Those that came with the run, and those whose result is waited for: a page may bring it without defining them again. */
async function clientToolsOf(
  { tools = [] }: RunRequest,
  state: ReadonlyMap<string, unknown>,
  others: readonly Tool[],
): Promise<Tool[]> {
  const defined = await createClientTools(tools);
  const known = new Set([...others, ...defined].map(({ name }) => name));
  // What a subagent's front end carries out is the subagent's tool.
  const own = openInterrupts(state).filter(({ kind, asked_by }) => kind === "tool" && !asked_by);
  const asked = own.filter(({ name }) => !known.has(name));
  const names = new Set(asked.map(({ name }) => name));
  const parameters = { type: "object" };
  return [...defined, ...[...names].map((name) => clientTool({ name, description: name, parameters }))];
}

// With what a run was started besides its messages: a model, and settings for it. They lie in the thread's state while
// the run waits, so that whoever goes on with it goes on alike.
/** The slot of the thread's state. */
const SLOT = "run_options";

const RunOptions = RunRequest.pick({ model: true, settings: true });
export type RunOptions = Pick<RunRequest, "model" | "settings">;
type State = ReadonlyMap<string, unknown>;

/** Those of the request, and of one that goes on with another run that one's, unless `isOffered` denies its model. */
export function optionsOf(
  { resumes }: RunRecord,
  { model, settings }: RunRequest,
  { state, isOffered }: { readonly state: State; readonly isOffered: (model: string) => boolean },
): RunOptions {
  const kept = resumes === undefined ? undefined : RunOptions.safeParse(state.get(SLOT)).data;
  const before = kept?.model !== undefined && isOffered(kept.model) ? kept.model : undefined;
  return { ...omitUndefined({ model: model ?? before }), settings: { ...kept?.settings, ...settings } };
}

/** What is to be written with the end of a run that waits. */
export function keptOptions({ model, settings }: RunOptions, state: State): StreamEvent[] {
  const isUsual = model === undefined && Object.keys(settings).length === 0;
  if (isUsual && !state.has(SLOT)) return [];
  return [{ event: "on_state", data: { key: SLOT, value: { settings, ...omitUndefined({ model }) } } }];
}

// What an agent's model is offered when this user talks to it: read off the agent as it would be built for a run.

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
  const agent = agents.build(
    definition,
    { tools, items, ...omitUndefined({ backend, subagents }) },
    { user },
  );
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

// What a run has left open, read back from its own log.

export interface Leftovers {
  /** The starts whose end is not in the log, in order. */
  readonly openings: readonly Opening[];
  /** Every tool call that has begun, ended or not: what it did is known only by its result in the thread. */
  readonly begun: readonly string[];
  /** What its model calls have used so far, and those of its subagents. */
  readonly usage: Usage;
  /** False when the log no longer goes back to the run's beginning: more may be open. */
  readonly isWhole: boolean;
}

/** Of a run that has not begun. */
export const NOTHING: Leftovers = { openings: [], begun: [], usage: NO_USAGE, isWhole: true };

const OF_INTEREST: ReadonlySet<EventName> = new Set(BRACKETS);

/** Reads what is in the log now. To be called by the run's writer, while it writes nothing. */
export async function leftovers(log: EventLog, lease: Lease): Promise<Leftovers> {
  const { first, last } = await log.bounds(lease);
  const events: StreamEvent[] = [];
  const read = last === 0 ? [] : log.read(lease, first - 1, new AbortController().signal);
  for await (const batch of read) {
    // The log holds what `append` was given, and nothing else.
    for (const { event, json } of batch)
      if (OF_INTEREST.has(event)) events.push(JSON.parse(json) as StreamEvent);
    if (batch.some(({ seq }) => seq === last)) break;
  }
  const own = events.filter((event) => !event.path);
  const begun = own.flatMap((event) => (event.event === "on_tool_start" ? [event.data.call_id] : []));
  const usage = own.map(usedIn).reduce(addUsage, NO_USAGE);
  return { openings: stillOpen(events), begun, usage, isWhole: first <= 1 };
}

/** What a subagent uses counts when it is told to have ended: whoever goes on follows the others from their beginning. */
function usedIn(event: StreamEvent): Usage {
  const tells = event.event === "on_chat_model_end" || event.event === "on_subagent_end";
  return (tells ? event.data.usage : undefined) ?? NO_USAGE;
}
