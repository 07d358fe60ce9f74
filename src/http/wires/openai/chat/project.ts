// A run as the chunks of an OpenAI chat completion, and as a whole completion.

import { NO_USAGE, type Usage } from "../../../../core/message.ts";
import type { RunRecord } from "../../../../core/records.ts";
import type { StreamEvent } from "../../../../protocol/event.ts";
import type { Interrupt } from "../../../../protocol/interrupt.ts";
import type { Fold } from "../../fold.ts";
import { approvalText, questionText } from "../../words.ts";
import { forcedCallId } from "../pairing.ts";

export interface ProjectOptions {
  /** The agent's name. */
  readonly model: string;
  /** A last chunk tells the usage. */
  readonly includesUsage: boolean;
  /** The client wants the run's output and no other text: it comes at the end, when it is known to fit. */
  readonly outputOnly: boolean;
  /** The client's function whose arguments the output is. */
  readonly answersAs?: string;
}

interface Delta {
  readonly role?: "assistant";
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
}

interface Step {
  readonly deltas: readonly Delta[];
  readonly finish?: string;
  readonly usage?: Usage;
  readonly error?: { readonly code: string; readonly message: string };
}

/** The stream's frames: chunks, then `[DONE]`; a failure ends with an `error` in its place. */
export function project({ model, includesUsage, ...answer }: ProjectOptions): Fold {
  const stepOf = createFold(answer);
  return (event, run) => {
    const step = stepOf(event, run);
    const base = { ...headOf(run, model), object: "chat.completion.chunk" };
    const usage = includesUsage ? { usage: null } : {};
    const chunk = (delta: Delta, finish_reason: string | null) => ({
      data: JSON.stringify({
        ...base,
        choices: [{ index: 0, delta, logprobs: null, finish_reason }],
        ...usage,
      }),
    });
    const frames = step.deltas.map((delta) => chunk(delta, null));
    if (step.error) return [...frames, { data: JSON.stringify({ error: errorOf(step.error) }) }];
    if (step.finish === undefined) return frames;
    frames.push(chunk({}, step.finish));
    if (includesUsage)
      frames.push({ data: JSON.stringify({ ...base, choices: [], usage: usageOf(step.usage) }) });
    return [...frames, { data: "[DONE]" }];
  };
}

/** Adds up a whole completion. `completion` is complete after the run's last event. */
export function collect({ model, ...answer }: Omit<ProjectOptions, "includesUsage">) {
  const stepOf = createFold(answer);
  let content = "";
  let reasoning = "";
  let last: Step = { deltas: [] };
  const calls: object[] = [];
  return {
    see(event: StreamEvent, run: RunRecord): void {
      last = stepOf(event, run);
      for (const delta of last.deltas) {
        content += delta.content ?? "";
        reasoning += delta.reasoning_content ?? "";
        calls.push(...(delta.tool_calls ?? []));
      }
    },
    error: () => last.error,
    completion(run: RunRecord) {
      const message = {
        role: "assistant",
        content: content === "" && calls.length > 0 ? null : content,
        refusal: null,
        ...(reasoning ? { reasoning_content: reasoning } : {}),
        ...(calls.length > 0 ? { tool_calls: calls } : {}),
      };
      return {
        ...headOf(run, model),
        object: "chat.completion" as const,
        choices: [{ index: 0, message, logprobs: null, finish_reason: last.finish ?? "stop" }],
        usage: usageOf(last.usage),
      };
    },
  };
}

const headOf = ({ id, created_at }: RunRecord, model: string) => ({
  id: `chatcmpl-${id}`,
  created: Math.floor(Date.parse(created_at) / 1000),
  model,
});

const errorOf = ({ code, message }: { code: string; message: string }) => ({
  message,
  type: "server_error",
  code,
  param: null,
});

const usageOf = (usage: Usage = NO_USAGE) => ({
  prompt_tokens: usage.input_tokens,
  completion_tokens: usage.output_tokens,
  total_tokens: usage.input_tokens + usage.output_tokens,
  prompt_tokens_details: { cached_tokens: usage.cache_read_tokens },
});

const FINISH: Readonly<Record<string, string>> = { max_tokens: "length", refusal: "content_filter" };

function createFold({
  outputOnly,
  answersAs,
}: Pick<ProjectOptions, "outputOnly" | "answersAs">): (event: StreamEvent, run: RunRecord) => Step {
  let hasText = false;
  let isNewText = false;
  let isFailed = false;
  const toolCalls: object[] = [];

  const say = (text: string): Delta[] => {
    // A second message of the run, or what is said after a failed attempt, is set apart.
    const gap = hasText && isNewText ? "\n\n" : "";
    hasText = true;
    isNewText = false;
    return [{ content: gap + text }];
  };
  const call = (id: string, name: string, args: object): Delta[] => {
    const made = { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    toolCalls.push(made);
    return [{ tool_calls: [{ index: toolCalls.length - 1, ...made }] }];
  };
  const answer = (output: object, run: RunRecord): Delta[] =>
    answersAs === undefined
      ? say(JSON.stringify(output))
      : call(forcedCallId(run, answersAs), answersAs, output);
  const ask = (question: Interrupt): Delta[] => {
    const { kind, call_id, name, args, asked_by } = question;
    if (kind === "tool" && !asked_by) return call(call_id, name, args);
    isNewText = true;
    return say(kind === "approval" ? approvalText(question) : questionText(question));
  };

  return (event, run) => {
    if (event.path) return { deltas: [] };
    switch (event.event) {
      case "run_start":
        return { deltas: [{ role: "assistant", content: "" }] };
      case "on_chat_model_start": {
        const deltas = isFailed && hasText ? [{ content: "\n\n…" }] : [];
        isNewText = true;
        isFailed = false;
        return { deltas };
      }
      case "on_chat_model_stream": {
        const { data } = event;
        if ("delta" in data) return { deltas: outputOnly ? [] : say(data.delta) };
        return { deltas: "reasoning_delta" in data ? [{ reasoning_content: data.reasoning_delta }] : [] };
      }
      case "on_chat_model_end":
        isFailed = event.data.error !== undefined;
        return { deltas: [] };
      case "message_discard":
        isFailed = true;
        return { deltas: [] };
      case "on_interrupt":
        return { deltas: ask(event.data) };
      case "error":
        return { deltas: [], error: event.data };
      case "done": {
        const { status, stop_reason, usage, output } = event.data;
        if (status === "error") {
          isNewText = true;
          return { deltas: say(`The run has reached a limit: ${stop_reason}.`), finish: "stop", usage };
        }
        const deltas = outputOnly && output ? answer(output, run) : [];
        return {
          deltas,
          finish: toolCalls.length > 0 ? "tool_calls" : (FINISH[stop_reason] ?? "stop"),
          usage,
        };
      }
      default:
        return { deltas: [] };
    }
  };
}
