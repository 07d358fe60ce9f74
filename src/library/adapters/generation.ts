// Pre- and post-generation hooks: functions over one state, once before the whole loop and once after it.

import type { HookServices } from "../../core/hook.ts";
import type { AssistantMessage, Message, Usage } from "../../core/message.ts";
import type { SystemBlock } from "../../core/model.ts";
import type { Run } from "../../core/tool.ts";
import { valueKey } from "../../core/values.ts";
import type { HookFactory } from "../own-hooks.ts";
import { createView, type View } from "./view.ts";

/** One for each run, shared by all its generation hooks. */
export interface GenerationState {
  /** The thread's id. */
  readonly sessionId: string;
  readonly userId: string;
  readonly run: Run;
  /** What the model is told. To be changed before the generation; the thread does not change with it. */
  systemPrompt: string;
  /** What the model is shown of the thread so far; as `systemPrompt`, otherwise. */
  messages: Message[];
  /** After the generation, if it came to an answer. */
  response?: AssistantMessage;
  /** After it: what it added to the thread. */
  outputMessages: readonly Message[];
  /** After it. */
  usage?: Usage;
  /** For hooks to leave things for each other. */
  readonly values: Map<string, unknown>;
}

export type GenerationHook = (state: GenerationState) => void | Promise<void>;

interface Generation {
  readonly state: GenerationState;
  readonly view: View;
  /** As they were before any hook. */
  readonly before: { readonly systemPrompt: string; readonly messages: readonly Message[] };
  /** The hook that shows the model what all of them have changed. */
  readonly showing: object;
}

const GENERATION = valueKey<Generation>("generation");

/** In order, before the first model call. What one throws fails the run. */
export function fromPreGeneration(...hooks: readonly GenerationHook[]): HookFactory {
  return ({ agent }) => {
    const self = {};
    return {
      name: "pre-generation",
      async beforeAgent(run) {
        const { state } = generationOf(run, agent, self);
        for (const hook of hooks) await hook(state);
      },
      modifyRequest(request, run) {
        const { state, before, view, showing } = generationOf(run, agent, self);
        if (showing !== self) return request;
        const isSame = state.messages.length === before.messages.length;
        if (!isSame || state.messages.some((message, at) => message !== before.messages[at]))
          view.replace(before.messages, state.messages);
        const own = new Set(agent.system.map(({ id }) => id));
        const prompt = { id: "instructions", text: state.systemPrompt, cache: "static" } as const;
        const others = request.system.filter(({ id }) => !own.has(id));
        const system = state.systemPrompt === before.systemPrompt ? request.system : [prompt, ...others];
        return { ...request, system, messages: view.of(request.messages) };
      },
    };
  };
}

/** In order, once the run has its outcome, whatever it is. What one throws is a `warning`; the others still run. */
export function fromPostGeneration(...hooks: readonly GenerationHook[]): HookFactory {
  return ({ agent }) => {
    const self = {};
    return {
      name: "post-generation",
      beforeAgent: (run) => void generationOf(run, agent, self),
      async afterAgent(outcome, run) {
        const { state, before } = generationOf(run, agent, self);
        state.outputMessages = run.messages.slice(before.messages.length);
        state.usage = run.usage;
        if ("message" in outcome && outcome.message) state.response = outcome.message;
        const failures: unknown[] = [];
        for (const hook of hooks)
          try {
            await hook(state);
          } catch (error) {
            failures.push(error);
          }
        if (failures.length > 0) throw failures[0];
      },
    };
  };
}

function generationOf(run: Run, agent: HookServices["agent"], hook: object): Generation {
  const known = run.values.get(GENERATION);
  if (known) return known;
  const systemPrompt = agent.system.map(({ text }: SystemBlock) => text).join("\n\n");
  const messages = [...run.messages];
  const state: GenerationState = {
    ...{ sessionId: run.threadId, userId: run.owner.user, run, systemPrompt, messages: [...messages] },
    ...{ outputMessages: [], values: new Map() },
  };
  const generation = { state, view: createView(), before: { systemPrompt, messages }, showing: hook };
  run.values.set(GENERATION, generation);
  return generation;
}
