// What a run needs before it can be driven: its agent, its thread, and what earlier attempts and answers have left.

import { keptOverrides } from "../agents/kept-overrides.ts";
import type { AgentDefinition } from "../core/agent.ts";
import type { DeferredCall } from "../core/deferred-calls.ts";
import { AppError, hasCode } from "../core/errors.ts";
import { openInterrupts } from "../core/interrupts.ts";
import { Message } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import { Lineage, type RunRequest } from "../core/records.ts";
import type { RunInput } from "../core/run.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { Claim, Lease, Stores } from "../core/stores.ts";
import type { Tool } from "../core/tool.ts";
import { runTrace } from "../core/trace.ts";
import { fitted } from "../lib/fitted.ts";
import { given } from "../lib/given.ts";
import { clientTool, createClientTools } from "../tools/client.ts";
import { EXPIRY } from "./asked.ts";
import type { Leftovers } from "./leftovers.ts";
import { optionsOf, type RunOptions } from "./options.ts";
import type { AgentSource, Control, DriveServices } from "./services.ts";
import { standIns } from "./stand-ins.ts";

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

  const parts = { tools, items: stores.items, ...given({ backend, recorder, quotas, subagents }) };
  const isOffered = (model: string) => isThere(agents, definition, model);
  const options = optionsOf(run, request, { state, isOffered });
  const built = agents.build(definition, parts, { user, ...given({ model: options.model }) });
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
    ...given({ backend, lineage, threadMetadata: thread?.metadata }),
    ...given({ trace: recorder && runTrace(recorder, { run_id: run.id, thread_id }) }),
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
  return { ...rest, ...given({ backend }) };
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
