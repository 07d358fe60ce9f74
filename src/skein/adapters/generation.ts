// Pre- and post-generation hooks: functions that share a state. They run once before the agent loop or once after it.

import {
  type AssistantMessage,
  type Content,
  estimateTokens,
  type HookFactory,
  type HookServices,
  type Message,
  type Run,
  type SystemBlock,
  type Usage,
  userMessage,
  valueKey,
} from "../../index.ts";
import { createView, type MessageView } from "./view.ts";

/** The state of a run, shared by all its generation hooks. */
export interface GenerationState {
  /** The id of the thread. */
  readonly sessionId: string;
  readonly userId: string;
  readonly run: Run;
  /** The run's system prompt. A change before the generation applies to this run but not to the thread. */
  systemPrompt: string;
  /**
   * The thread's messages so far, as the model sees them. A change before the generation applies to this run but not to
   * the thread.
   */
  messages: Message[];
  /** The run's answer, if any. Set after the generation. */
  response?: AssistantMessage;
  /** The messages that the generation added to the thread. Set after the generation. */
  outputMessages: readonly Message[];
  /** The usage of the run. Set after the generation. */
  usage?: Usage;
  /** Values that hooks share. */
  readonly values: Map<string, unknown>;
}

export type GenerationHook = (state: GenerationState) => void | Promise<void>;

interface Generation {
  readonly state: GenerationState;
  readonly view: MessageView;
  /** The values before the first generation hook ran. */
  readonly before: { readonly systemPrompt: string; readonly messages: readonly Message[] };
  /** The single hook that applies the changes of all generation hooks. */
  readonly showing: object;
}

const GENERATION = valueKey<Generation>("generation");

/** Creates a hook from functions that run in order before the first model call. A thrown error fails the run. */
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

/**
 * Creates a hook from functions that run in order after the run, regardless of its outcome. A thrown error becomes a
 * `warning`, and the other functions still run.
 */
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
    sessionId: run.threadId,
    userId: run.owner.user,
    run,
    systemPrompt,
    messages: [...messages],
    outputMessages: [],
    values: new Map(),
  };
  const generation = { state, view: createView(), before: { systemPrompt, messages }, showing: hook };
  run.values.set(GENERATION, generation);
  return generation;
}

/** Shows the model a user message with this content before all other messages. */
export function injectContext(content: Content): GenerationHook {
  return (state) => void state.messages.unshift(userMessage(content));
}

/**
 * Replaces the conversation with the result of `summarize` once it reaches `threshold` estimated tokens. The thread
 * keeps all messages. Skein's own `summarization` hook does the same before each model call and stores the summary.
 */
export function compaction(
  threshold: number,
  summarize: (messages: readonly Message[], signal: AbortSignal) => Promise<readonly Message[]>,
): GenerationHook {
  return async (state) => {
    if (estimateTokens(state.messages) < threshold) return;
    state.messages = [...(await summarize(state.messages, state.run.signal))];
  };
}

/** Logs the tokens of all model calls in the run. */
export function usageLogger(logger: { info(details: object, message: string): void }): GenerationHook {
  return ({ usage, sessionId }) => {
    if (!usage) return;
    const { input_tokens, output_tokens } = usage;
    logger.info({ session_id: sessionId, input_tokens, output_tokens }, "generation complete");
  };
}
