// Prepares a claimed run for the loop: its agent, its thread, its options, and the state left by previous attempts.

import { keptOverrides } from "../../agent/agents/overrides.ts";
import type { AgentDefinition } from "../../agent/core/agent.ts";
import type { BackendConfig } from "../../agent/core/backend.ts";
import { AppError, hasCode } from "../../agent/core/errors.ts";
import { Message } from "../../agent/core/message.ts";
import { OPEN_ENDED, openInterrupts } from "../../agent/core/open-interrupts.ts";
import type { OutputFormat } from "../../agent/core/output.ts";
import { Lineage, RunRequest } from "../../agent/core/records.ts";
import type { RunInput } from "../../agent/core/run.ts";
import type { Agent } from "../../agent/core/runnable-agent.ts";
import type { Claim } from "../../agent/core/stores.ts";
import { runTrace, type Tool } from "../../agent/core/tool.ts";
import { clientTool, createClientTools } from "../../agent/tools/client.ts";
import { fitted } from "../../lib/fitted.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { loadSchemaEngine } from "../../lib/untrusted-schema/index.ts";
import { unopened } from "./offered-tools.ts";
import { openCalls } from "./open-calls.ts";
import type { PreviousAttempt } from "./previous-attempt.ts";
import type { Agents, Control, RunObserver, RunServices } from "./services.ts";
import { traceparentOfCall } from "./tracing.ts";

export interface PreparedRun {
  readonly agent: Agent;
  readonly input: RunInput;
  /** The size of the thread's messages, in bytes. */
  readonly bytes: number;
  readonly runOptions: RunObserver;
  readonly deferredResults: RunObserver;
}

const CANCELLED = AbortSignal.abort(new AppError("cancelled", "The run was cancelled."));

/** Throws `invalid_request` if the agent or its model is no longer configured. */
export async function prepareRun(
  claim: Claim,
  services: RunServices,
  control: Control,
  attempt: PreviousAttempt,
): Promise<PreparedRun> {
  const { lease, run, request } = claim;
  const { stores, agents, backends, recorder, quotas, subagents, tasks } = services;
  const { owner, thread_id } = lease;
  const only = onlyOf(request);
  const known = stores.threads.state(owner, thread_id);
  const placed = known.then(async (slots) => {
    const lineage = request.lineage ?? Lineage.safeParse(slots.lineage).data;
    const definition = withBackend(agents, run.agent, lineage);
    // Getting a backend from the pool starts its sandbox.
    const take = only ? unopened : (config: BackendConfig) => backends.get(owner, config);
    const backend = definition.backend && (await take(definition.backend));
    return { lineage, definition, backend };
  });
  const [stored, measured, slots, { lineage, definition, backend }, tools = [], user] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.measured(owner, thread_id),
    known,
    placed,
    services.tenantTools?.(owner, run.agent),
    keptOverrides(stores.items, owner, run.agent),
  ]);
  const messages = stored.map(withTextIds);
  const state = new Map(Object.entries(slots));
  const thread = measured?.thread;
  const { deferredResults, ...calls } = await openCalls(claim, services, attempt, {
    messages,
    state,
    thread,
  });

  const options = optionsOf(agents, definition, claim, state);
  const parts = { tools, items: stores.items, backend, recorder, quotas, subagents, tasks };
  const built = await agents.build(definition, parts, { user, model: options.model });
  const agent = {
    ...built,
    ...omitUndefined({ output: await outputOf(options.output_schema, definition, built) }),
    tools: [...built.tools, ...(await clientTools(request, state, built.tools))],
    ...(request.unattended ? { interrupts: { ...OPEN_ENDED, ...built.interrupts, unattended: true } } : {}),
  };
  const input: RunInput = {
    id: run.id,
    threadId: thread_id,
    owner,
    attempt: run.attempt,
    signal: request.cancel && !only ? AbortSignal.any([control.signal, CANCELLED]) : control.signal,
    messages,
    state,
    settings: options.settings,
    input: request.input,
    ...omitUndefined({ replaces: request.replaces, only }),
    usage: attempt.usage,
    partial: attempt.partial,
    answers: request.answers ?? [],
    ...calls,
    inbox: () => stores.runs.inbox(lease),
    interruptRequested: control.interruptRequested,
    backend,
    lineage,
    threadMetadata: thread?.metadata,
    traceparent: (callId) => traceparentOfCall(services, { id: run.id, origin: request.origin }, callId),
    trace: recorder && runTrace(recorder, { run_id: run.id, thread_id }),
  };
  return {
    agent,
    input,
    bytes: measured?.bytes ?? 0,
    runOptions: keepOptions(options, state),
    deferredResults,
  };
}

function onlyOf({ restores, appends }: RunRequest): RunInput["only"] {
  if (restores !== undefined) return "restores";
  return appends ? "appends" : undefined;
}

/** Returns an agent's definition. A subagent can use the backend of another agent. */
export function withBackend(agents: Agents, name: string, lineage: Lineage | undefined): AgentDefinition {
  const definition = agents.find(name);
  if (lineage?.backend_of === undefined) return definition;
  const { backend } = agents.find(lineage.backend_of);
  const { backend: _, ...rest } = definition;
  return { ...rest, ...omitUndefined({ backend }) };
}

/** Earlier versions stored a provider's calls unchecked, so their names and ids may be numbers or missing. */
function withTextIds(message: Message): Message {
  const isText = (value: unknown) => typeof value === "string";
  return namesIn(message).every(isText) ? message : fitted(Message, message).value;
}

const NONE: readonly unknown[] = [];

function namesIn(message: Message): readonly unknown[] {
  if (message.role === "tool") return [message.tool_call_id, message.name];
  if (message.role !== "assistant" || !message.tool_calls) return NONE;
  return message.tool_calls.flatMap(({ id, name }) => [id, name]);
}

/**
 * Returns the run's client tools and the client tools with open calls. A page can send a result without defining the
 * tool again.
 */
async function clientTools(
  { tools = [] }: RunRequest,
  state: ReadonlyMap<string, unknown>,
  others: readonly Tool[],
): Promise<Tool[]> {
  const defined = await createClientTools(tools);
  const known = new Set([...others, ...defined].map(({ name }) => name));
  // A client tool of a subagent belongs to the subagent's own run.
  const own = openInterrupts(state).filter(({ kind, asked_by }) => kind === "tool" && !asked_by);
  const names = new Set(own.map(({ name }) => name).filter((name) => !known.has(name)));
  const parameters = { type: "object" };
  return [...defined, ...[...names].map((name) => clientTool({ name, description: name, parameters }))];
}

/**
 * The run's own schema takes precedence over the agent's. An agent defined in a program brings its own output format.
 */
async function outputOf(
  own: RunOptions["output_schema"],
  { output_schema }: AgentDefinition,
  { output }: Agent,
): Promise<OutputFormat | undefined> {
  const schema = own ?? (output ? undefined : output_schema);
  if (schema === undefined) return output;
  const { checker } = await loadSchemaEngine();
  const { prepare, check } = checker(schema);
  await prepare();
  return { schema, check };
}

/** The state key for the model and settings of an interrupted run. The run that resumes it uses them. */
const OPTIONS_KEY = "run_options";
const RunOptions = RunRequest.pick({ model: true, settings: true, output_schema: true });
type RunOptions = Pick<RunRequest, "model" | "settings" | "output_schema">;
type State = ReadonlyMap<string, unknown>;

/**
 * Returns the request's options, merged over the options of the run that it resumes. If that run's model is no longer
 * allowed, its options are ignored.
 */
function optionsOf(
  agents: Agents,
  definition: AgentDefinition,
  { run, request: { model, settings, output_schema } }: Claim,
  state: State,
): RunOptions {
  const kept = run.resumes === undefined ? undefined : RunOptions.safeParse(state.get(OPTIONS_KEY)).data;
  const before =
    kept?.model !== undefined && isAllowed(agents, definition, kept.model) ? kept.model : undefined;
  return {
    ...omitUndefined({ model: model ?? before, output_schema: output_schema ?? kept?.output_schema }),
    settings: { ...kept?.settings, ...settings },
  };
}

function isAllowed(agents: Agents, definition: AgentDefinition, model: string): boolean {
  try {
    agents.checkModel(definition, model);
    return true;
  } catch (error) {
    if (hasCode(error, "invalid_request")) return false;
    throw error;
  }
}

/** Writes the options along with the end of an interrupted run. */
function keepOptions({ settings, ...others }: RunOptions, state: State): RunObserver {
  const value = { settings, ...omitUndefined(others) };
  const isDefault = Object.keys(value).length === 1 && Object.keys(settings).length === 0;
  return {
    beforeWrite(event) {
      if (event.event !== "done" || event.data.status !== "interrupted") return undefined;
      return isDefault && !state.has(OPTIONS_KEY)
        ? []
        : [{ event: "on_state", data: { key: OPTIONS_KEY, value } }];
    },
  };
}
