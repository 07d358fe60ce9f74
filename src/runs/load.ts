// What a run needs before it can be driven: its agent, its thread, and what earlier attempts and answers have left.

import type { Agent } from "../core/agent.ts";
import { clientTool, createClientTools } from "../core/client-tools.ts";
import { openInterrupts } from "../core/interrupts.ts";
import type { Message } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import type { RunInput } from "../core/run.ts";
import type { Claim, Lease, RunRequest, Stores } from "../core/stores.ts";
import type { Tool } from "../core/tool.ts";
import { given } from "../lib/given.ts";
import type { Control, DriveServices } from "./drive.ts";
import type { Leftovers } from "./leftovers.ts";

export interface Loaded {
  readonly agent: Agent;
  readonly input: RunInput;
  /** To be called once a message is in the thread: a result that was delivered for it is then kept no longer. */
  forgetDelivered(message: Message): Promise<void>;
}

/** Throws `invalid_request` for an agent or a model that there is no more. */
export async function load(
  claim: Claim,
  services: DriveServices,
  control: Control,
  { begun, isWhole, usage }: Leftovers,
): Promise<Loaded> {
  const { lease, run, request } = claim;
  const { stores, agents, backends, recorder, quotas } = services;
  const { owner, thread_id } = lease;
  const definition = agents.find(run.agent);
  const [messages, slots, backend, tools = []] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.state(owner, thread_id),
    definition.backend ? backends.get(owner, definition.backend) : undefined,
    services.tenantTools?.(owner, definition.name),
  ]);
  const state = new Map(Object.entries(slots));
  const open = unanswered(messages).map(({ id }) => id);
  const later = await deferredOf(stores, lease, open);

  const parts = { tools, ...(backend ? { backend } : {}), ...given({ recorder, quotas }) };
  const built = agents.build(definition, parts, request.model === undefined ? {} : { model: request.model });
  const agent = { ...built, tools: [...built.tools, ...(await clientToolsOf(request, state, built.tools))] };
  const input: RunInput = {
    ...{ id: run.id, threadId: thread_id, owner, attempt: run.attempt, signal: control.signal },
    ...{ messages, state, settings: request.settings, input: request.input, usage },
    answers: request.answers ?? [],
    // Where the log does not tell, every call that has no result may have begun. A finished one's id may come again.
    begun: new Set(open.filter((id) => !later.has(id) && (!isWhole || begun.includes(id)))),
    inbox: () => stores.runs.inbox(lease),
    interruptRequested: control.interruptRequested,
    ...(backend ? { backend } : {}),
  };
  return {
    agent,
    input,
    async forgetDelivered(message) {
      if (message.role !== "tool" || !later.has(message.tool_call_id)) return;
      await stores.deferredCalls.forget({ owner, thread_id, call_id: message.tool_call_id });
    },
  };
}

/** The calls whose result comes later, or has come: they are not begun again, whatever the log says. */
async function deferredOf(
  { deferredCalls }: Stores,
  { owner, thread_id }: Lease,
  calls: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = await Promise.all(calls.map((call_id) => deferredCalls.get({ owner, thread_id, call_id })));
  return new Set(found.flatMap((call) => (call && call.state !== "sent" ? [call.call_id] : [])));
}

/** Those that came with the run, and those whose result is waited for: a page may bring it without defining them again. */
async function clientToolsOf(
  { tools = [] }: RunRequest,
  state: ReadonlyMap<string, unknown>,
  others: readonly Tool[],
): Promise<Tool[]> {
  const defined = await createClientTools(tools);
  const known = new Set([...others, ...defined].map(({ name }) => name));
  const asked = openInterrupts(state).filter(({ kind, name }) => kind === "tool" && !known.has(name));
  const names = new Set(asked.map(({ name }) => name));
  const parameters = { type: "object" };
  return [...defined, ...[...names].map((name) => clientTool({ name, description: name, parameters }))];
}
