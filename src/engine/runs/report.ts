// Collects the metrics of a run for its log line.

import type { Usage } from "../../agent/core/message.ts";
import type { Claim } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { readSpans } from "../../protocol/span-reader.ts";
import type { RunObserver } from "./services.ts";

/** Times are in milliseconds since the run was accepted. */
export interface RunReport {
  /** The model of the most recent call. */
  readonly model?: string;
  readonly duration_ms: number;
  /** The number of milliseconds until this attempt began. */
  readonly waited_ms: number;
  readonly first_token_ms?: number;
  /** The tokens used by the run's models and subagents, including earlier attempts. */
  readonly tokens?: Omit<Usage, "cost">;
  /** The cost in millionths of the currency unit. */
  readonly cost?: number;
  readonly model_calls: number;
  readonly model_failures: number;
  /** The number of calls per tool. */
  readonly tools: Readonly<Record<string, number>>;
  readonly tool_failures: number;
}

export interface RunReporter extends RunObserver {
  report(): RunReport;
}

/** Models can invent tool names, so calls of any further tools are counted under `other`. */
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

  const spans = readSpans({
    model: {
      opened({ start }) {
        model = start.data.model;
        askedAt = Date.now();
        calls++;
      },
      closed({ data: { error, first_token_ms: sinceAsked } }) {
        if (error) failures++;
        if (sinceAsked !== undefined) first_token_ms ??= Math.max(0, askedAt - accepted) + sinceAsked;
      },
    },
    tool: {
      opened({ start: { name } }) {
        const counted = tools.has(name) || tools.size < MAX_TOOLS ? name : "other";
        tools.set(counted, (tools.get(counted) ?? 0) + 1);
      },
      closed({ data }) {
        if (data.error !== undefined) toolFailures++;
      },
    },
    run: {
      closed({ data }) {
        usage = data.usage;
      },
    },
  });

  return {
    onProgress: spans.see,
    afterWrite: (event) => void spans.see(event),
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
