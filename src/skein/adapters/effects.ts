// Effects: functions that run before and after each model call and may change the messages that the model sees.

import type { HookFactory, Message, Model, Run } from "../../index.ts";
import { createView } from "./view.ts";

/** The messages that the model sees. Changes do not affect the thread. */
export interface Chat {
  readonly messages: readonly Message[];
  /**
   * Appends messages. Messages that are added before a model call apply to that call. Messages that are added after a
   * model call apply to the next one.
   */
  append(...messages: readonly Message[]): void;
  replace(messages: readonly Message[]): void;
}

export interface IterationContext {
  /** Before the model call, or between its reply and its tool calls. */
  readonly phase: "before_complete" | "after_complete";
  /** The number of the model call, starting at 0. */
  readonly iteration: number;
  readonly chat: Chat;
  readonly model: Model;
  readonly agentName: string;
  readonly run: Run;
}

type Eval = (context: IterationContext) => void | Promise<void>;

export type Effect =
  | Eval
  /** `reset` is called when a run starts. Concurrent runs share the effect, so it should not keep any state of a run. */
  | { readonly eval: Eval; reset?(): void };

/** Creates a hook from effects, which run in order in both phases. A thrown error fails the run. */
export function fromEffect(...effects: readonly Effect[]): HookFactory {
  return ({ agent }) => {
    const view = createView();
    let iteration = -1;
    /** The messages added after a model call, for the next one. */
    let later: Message[] = [];

    return {
      name: "effects",
      beforeAgent() {
        for (const effect of effects) if (typeof effect !== "function") effect.reset?.();
      },
      async modifyRequest(request, run) {
        iteration++;
        const chat = chatOf([...view.of(request.messages), ...later]);
        later = [];
        const context = { phase: "before_complete", iteration, chat, model: request.model } as const;
        for (const effect of effects) await evalOf(effect)({ ...context, agentName: agent.name, run });
        view.replace(request.messages, chat.messages);
        return { ...request, messages: chat.messages };
      },
      async *wrapModelCall(request, next, run) {
        const completion = yield* next(request);
        const before = [...request.messages, completion.message];
        const chat = chatOf(before);
        const context = { phase: "after_complete", iteration, chat, model: request.model } as const;
        for (const effect of effects) await evalOf(effect)({ ...context, agentName: agent.name, run });
        later = chat.messages.filter((message) => !before.includes(message));
        return completion;
      },
    };
  };
}

const evalOf = (effect: Effect): Eval => (typeof effect === "function" ? effect : effect.eval.bind(effect));

function chatOf(messages: readonly Message[]): Chat {
  let now = messages;
  return {
    get messages() {
      return now;
    },
    append: (...more) => {
      now = [...now, ...more];
    },
    replace: (others) => {
      now = [...others];
    },
  };
}
