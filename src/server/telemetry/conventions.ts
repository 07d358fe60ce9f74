// The names from OpenTelemetry's conventions for generative AI. They are all in this file because they still have the
// status "Development", and some were renamed in the past. As of open-telemetry/semantic-conventions-genai in November
// 2026.

import type { Attributes } from "@opentelemetry/api";
import type { Usage } from "../../agent/core/message.ts";
import type { StopReason } from "../../agent/core/model.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";

/** The URL of the schema that defines these names. It is sent with the instrumentation scope. */
export const SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai/1.42.0-dev";

/** OpenTelemetry's name for the API of each of our providers. Unlisted providers keep our names. */
const PROVIDERS: Readonly<Record<string, string>> = {
  azure: "azure.ai.openai",
  bedrock: "aws.bedrock",
  gemini: "gcp.gemini",
  vertex: "gcp.vertex_ai",
  groq: "groq",
  mistral: "mistral_ai",
  deepseek: "deepseek",
  xai: "x_ai",
};

export const EVENTS = { retry: "gen_ai.retry", started: "skein.run.started" } as const;

/** The attributes that contain messages, which are off unless the operator enables them. Lists are JSON. */
export const CONTENTS = {
  system: "gen_ai.system_instructions",
  input: "gen_ai.input.messages",
  output: "gen_ai.output.messages",
  arguments: "gen_ai.tool.call.arguments",
  result: "gen_ai.tool.call.result",
  /** The number of messages that did not fit, which are the oldest ones. */
  leftOut: "skein.input.messages_left_out",
} as const;

/** The parts of a message in these conventions. */
export type MessagePart = ReturnType<(typeof PARTS)[keyof typeof PARTS]>;
export const PARTS = {
  text: (content: string) => ({ type: "text", content }),
  reasoning: (content: string) => ({ type: "reasoning", content }),
  call: (id: string, name: string, args: unknown) => ({ type: "tool_call", id, name, arguments: args }),
  result: (id: string, response: string) => ({ type: "tool_call_response", id, response }),
};

export const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool_call",
  refusal: "content_filter",
};

interface AgentRun {
  readonly agent: string;
  readonly thread: string;
  readonly run: string;
  readonly attempt: number;
  readonly tenant: string;
  readonly status: string;
  readonly stopReason: string;
  readonly usage?: Usage | undefined;
}

export const agentName = (agent: string) => `invoke_agent ${agent}`;

export const agentAttributes = ({ agent, thread, usage, ...run }: AgentRun): Attributes => ({
  "gen_ai.operation.name": "invoke_agent",
  "gen_ai.agent.name": agent,
  "gen_ai.conversation.id": thread,
  "skein.run.id": run.run,
  "skein.run.attempt": run.attempt,
  "skein.run.status": run.status,
  "skein.run.stop_reason": run.stopReason,
  "skein.tenant": run.tenant,
  ...usageAttributes(usage),
});

interface ModelCall {
  /** `provider:model`. */
  readonly model: string;
  readonly thread: string;
  readonly stopReason?: string | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly usage?: Usage | undefined;
}

export const modelCallName = (model: string) => `chat ${partsOf(model).model}`;

export function modelCallAttributes(call: ModelCall): Attributes {
  const { provider, model } = partsOf(call.model);
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": PROVIDERS[provider] ?? provider,
    "gen_ai.request.model": model,
    "gen_ai.request.stream": true,
    "gen_ai.conversation.id": call.thread,
    ...omitUndefined({
      "gen_ai.response.finish_reasons": call.stopReason === undefined ? undefined : [call.stopReason],
      "gen_ai.response.time_to_first_chunk":
        call.firstTokenMs === undefined ? undefined : call.firstTokenMs / 1000,
    }),
    ...usageAttributes(call.usage),
  };
}

interface ToolCall {
  readonly tool: string;
  readonly callId: string;
  readonly thread: string;
}

/** A call to an MCP tool is one span, with the attributes of both conventions. */
export const toolCallName = (tool: string) => `${isOfMcp(tool) ? "tools/call" : "execute_tool"} ${tool}`;

export const isOfMcp = (tool: string) => tool.startsWith("mcp__");

export const toolCallAttributes = ({ tool, callId, thread }: ToolCall): Attributes => ({
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": tool,
  "gen_ai.tool.call.id": callId,
  "gen_ai.conversation.id": thread,
  ...(isOfMcp(tool) ? { "mcp.method.name": "tools/call" } : {}),
});

export const errorType = (code: string | undefined): Attributes => ({ "error.type": code ?? "_OTHER" });

/** Input tokens include cached tokens. */
function usageAttributes(usage: Usage | undefined): Attributes {
  if (!usage) return {};
  return {
    "gen_ai.usage.input_tokens": usage.input_tokens,
    "gen_ai.usage.output_tokens": usage.output_tokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
    "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
    ...(usage.cost === undefined ? {} : { "skein.usage.cost_millionths": usage.cost }),
  };
}

function partsOf(name: string): { provider: string; model: string } {
  const at = name.indexOf(":");
  return at < 0
    ? { provider: "_OTHER", model: name }
    : { provider: name.slice(0, at), model: name.slice(at + 1) };
}
