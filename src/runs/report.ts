// What a run did, in numbers: for the line that the log has of each run that ends.

import type { Usage } from "../core/message.ts";
import type { Claim } from "../core/stores.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { StreamEvent } from "../protocol/event.ts";
import type { RunObserver } from "./services.ts";

/** Times are in milliseconds since the run was accepted. */
export interface RunReport {
  /** The model that was asked last. */
  readonly model?: string;
  readonly duration_ms: number;
  /** Until this attempt began. */
  readonly waited_ms: number;
  readonly first_token_ms?: number;
  /** By its models and its subagents, also in earlier attempts. */
  readonly tokens?: Omit<Usage, "cost">;
  /** In millionths. */
  readonly cost?: number;
  readonly model_calls: number;
  readonly model_failures: number;
  /** How often each tool was called. */
  readonly tools: Readonly<Record<string, number>>;
  readonly tool_failures: number;
}

export interface RunReporter extends RunObserver {
  report(): RunReport;
}

/** Models make names up: calls of further tools are counted as `other`. */
const MAX_TOOLS = 20;

export function createReporter({ run }: Claim): RunReporter {
  const accepted = Date.parse(run.created_at);
  const waited_ms = Math.max(0, Date.now() - accepted);
  const tools = new Map<string, number>();
  let model: string | undefined;
  let askedAt = 0;
  let first_token_ms: number | undefined;
  let calls = 0;
  let failures = 0;
  let toolFailures = 0;
  let usage: Usage | undefined;

  function see(event: StreamEvent): undefined {
    switch (event.event) {
      case "on_chat_model_start":
        model = event.data.model;
        askedAt = Date.now();
        calls++;
        return;
      case "on_chat_model_end":
        if (event.data.error) failures++;
        if (event.data.first_token_ms !== undefined)
          first_token_ms ??= Math.max(0, askedAt - accepted) + event.data.first_token_ms;
        return;
      case "on_tool_start": {
        const name = tools.has(event.name) || tools.size < MAX_TOOLS ? event.name : "other";
        tools.set(name, (tools.get(name) ?? 0) + 1);
        return;
      }
      case "on_tool_end":
        if (event.data.error !== undefined) toolFailures++;
        return;
      case "done":
      case "error":
        usage = event.data.usage;
    }
  }

  return {
    onProgress: see,
    afterWrite: see,
    report() {
      const { cost, ...tokens } = usage ?? {};
      return {
        duration_ms: Math.max(0, Date.now() - accepted),
        waited_ms,
        ...omitUndefined({ model, first_token_ms, cost, tokens: usage && tokens }),
        model_calls: calls,
        model_failures: failures,
        tools: Object.fromEntries(tools),
        tool_failures: toolFailures,
      } as RunReport;
    },
  };
}
