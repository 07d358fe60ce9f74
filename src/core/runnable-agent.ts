// An agent as the loop runs it.

import type { Hook } from "./hook.ts";
import type { InterruptPolicy } from "./interrupt.ts";
import type { Model, SystemBlock } from "./model.ts";
import type { AgentLoop } from "./own-loop.ts";
import type { Tool } from "./tool.ts";

/** An agent ready to run, made for one run. */
export interface Agent {
  readonly name: string;
  readonly description?: string;
  readonly model: Model;
  readonly system: readonly SystemBlock[];
  readonly tools: readonly Tool[];
  /** Names of tools that its hooks must not give it. */
  readonly without?: ReadonlySet<string>;
  /** In order, first outermost. */
  readonly hooks: readonly Hook[];
  /** Model calls in one run; 0 = no limit. */
  readonly maxIterations: number;
  /** Default: a question stays open until it is answered. */
  readonly interrupts?: InterruptPolicy;
  /** In the place of the loop of ours. */
  readonly loop?: AgentLoop;
}
