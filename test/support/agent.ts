// An agent with a scripted model, driven without a server: the loop, hooks and tools as they are.

import { z } from "zod";
import { AgentFields } from "../../src/agent/core/agent.ts";
import type { Backend } from "../../src/agent/core/backend.ts";
import type { Hook } from "../../src/agent/core/hook.ts";
import { runAgent } from "../../src/agent/core/loop.ts";
import { type Message, NO_USAGE, type ToolCall, userMessage } from "../../src/agent/core/message.ts";
import type { Model } from "../../src/agent/core/model.ts";
import { newRunId, newThreadId } from "../../src/agent/core/new-ids.ts";
import type { Outcome, RunInput } from "../../src/agent/core/run.ts";
import type { Agent } from "../../src/agent/core/runnable-agent.ts";
import type { MaybeStream } from "../../src/agent/core/stream.ts";
import { defineTool, type Run, type Tool, type ToolResult } from "../../src/agent/core/tool.ts";
import { type Script, scriptedModel, type Turn } from "../../src/agent/models/scripted.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import type { InterruptPolicy } from "../../src/protocol/interrupt.ts";
import { merge } from "../../src/protocol/patch.ts";
import { drainRun } from "./drain.ts";

export interface Play {
  script?: readonly Turn[] | Script;
  model?: Model;
  tools?: readonly Tool[];
  hooks?: readonly Hook[];
  description?: string;
  system?: Agent["system"];
  maxIterations?: number;
  /** The text of the user's message, or nothing for a resume. */
  say?: string | null;
  input?: Partial<RunInput>;
  backend?: Backend;
  interrupts?: InterruptPolicy;
  onEvent?: (event: StreamEvent) => unknown;
}

export interface Played {
  readonly events: StreamEvent[];
  readonly outcome: Outcome;
  /** The thread after the run, as derived from its events. */
  readonly messages: Message[];
  readonly state: Map<string, unknown>;
}

/** One run, from a thread that starts empty unless `input.messages` says otherwise. */
export async function play(play: Play): Promise<Played> {
  const messages: Message[] = [...(play.input?.messages ?? [])];
  const state = new Map<string, unknown>(play.input?.state);
  const agent: Agent = {
    name: "test",
    model: play.model ?? scriptedModel(play.script ?? [{ say: "ok" }]),
    system: play.system ?? [],
    tools: play.tools ?? [],
    hooks: play.hooks ?? [],
    maxIterations: play.maxIterations ?? AgentFields.shape.max_iterations.parse(undefined),
    ...omitUndefined({ description: play.description, interrupts: play.interrupts }),
  };
  const record = async (event: StreamEvent) => {
    if (event.event === "on_message") messages.push(event.data.message);
    if (event.event === "on_state")
      state.set(
        event.data.key,
        event.data.patch ? merge(state.get(event.data.key), event.data.patch) : event.data.value,
      );
    await play.onEvent?.(event);
  };
  const { events, result } = await drainRun(runAgent(agent, runInput(play)), record);
  return { events, outcome: result, messages, state };
}

function runInput({ say = "hello", input = {}, backend }: Play): RunInput {
  return {
    id: newRunId(),
    threadId: newThreadId(),
    owner: { tenant: "acme", user: "ada" },
    attempt: 1,
    signal: new AbortController().signal,
    messages: [],
    state: new Map(),
    settings: {},
    input: say === null ? [] : [userMessage(say)],
    usage: NO_USAGE,
    begun: new Set(),
    inbox: async () => [],
    interruptRequested: () => false,
    ...(backend ? { backend } : {}),
    ...input,
  };
}

/** A tool that takes any arguments. It says "done" if nothing else is said. */
export const plainTool = (
  name: string,
  execute: (
    args: Record<string, unknown>,
    call: ToolCall,
    run: Run,
  ) => MaybeStream<ToolResult | string> = () => "done",
  annotations: Tool["annotations"] = {},
): Tool => defineTool({ name, description: "", parameters: z.looseObject({}), annotations, execute });
