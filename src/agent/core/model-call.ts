// The innermost layer of a model call, which wraps the provider, and the order of the system prompt.

import { isoTime } from "../../lib/iso-time.ts";
import { xmlTag } from "../../lib/text.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { namedCall } from "./called-tool.ts";
import { coerceCall } from "./coerce-arguments.ts";
import { AppError } from "./errors.ts";
import type { CallModel } from "./hook.ts";
import { type PartialMessage, withIncompleteNotes } from "./incomplete-message.ts";
import { type AssistantMessage, addUsage, isBlank, type ToolCall, type Usage } from "./message.ts";
import type { Completion, Model, ModelReply, ModelRequest, Remark, SystemBlock } from "./model.ts";
import { newMessageId } from "./new-ids.ts";
import { asOffered, maySearch } from "./own-search.ts";
import type { Lineage } from "./records.ts";
import type { MutableRun } from "./run.ts";
import { type DeltaSink, type Stream, tap, tapDeltas } from "./stream.ts";
import { usageMeter } from "./usage-meter.ts";

/** Calls the model. A failed call gets its end event, but adds no message to the thread. */
export async function* callModel(
  given: ModelRequest,
  run: MutableRun,
  deltas?: DeltaSink,
): Stream<Completion> {
  const request = { ...asOffered(given, run), messages: withIncompleteNotes(given.messages) };
  const { model } = request;
  const meter = usageMeter(request);
  request.onMeter?.(meter);
  const count = countOnce(run, model);
  const id = newMessageId();
  run.offeredTools = request.tools.map(({ name }) => name);
  await run.onModelRequest(request, id);
  yield { event: "on_chat_model_start", name: model.name, data: { message_id: id, ...shown(request) } };
  try {
    const begun = performance.now();
    let first_token_ms: number | undefined;
    const hear = (delta: StreamEvent) => {
      // The time is rounded down, like the times of events, so it never exceeds the duration of its span.
      first_token_ms ??= Math.floor(performance.now() - begun);
      meter.take(delta);
    };
    const traceparent = run.traceparent?.(spanOf(id, run));
    const asked = {
      ...request,
      onPartialUsage: meter.report,
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const reply = yield* tap(model.stream(asked, tapDeltas(deltas, hear)), hear);
    const { stop_reason } = reply;
    const usage = count(() => (model.isFree ? reply.usage : meter.whole(reply))) ?? reply.usage;
    remark(run, model, reply.remark ?? lowCount(reply.usage, usage));
    const said = {
      message_id: id,
      stop_reason,
      usage,
      ...(first_token_ms === undefined ? {} : { first_token_ms }),
    };
    const tool_calls = reply.tool_calls
      .map((call) => namedCall(call, run.tools))
      .map((call) => coerceCall(call, run.tools.get(call.name)));
    const message = asMessage(id, model.name, { ...reply, tool_calls, usage });
    const completion = { message, stop_reason };
    run.onModelReply(completion);
    yield { event: "on_chat_model_end", name: model.name, data: said };
    return completion;
  } catch (error) {
    const failure = request.signal.aborted ? reasonOf(request.signal) : AppError.from(error);
    const usage = count(meter.soFar);
    yield {
      event: "on_chat_model_end",
      name: model.name,
      data: { message_id: id, error: failure.toInfo(), ...(usage ? { usage } : {}) },
    };
    throw error;
  } finally {
    // Does nothing unless the consumer stopped reading the call before its end.
    count(meter.soFar);
  }
}

const shown = (request: ModelRequest) => ({
  model: request.model.name,
  message_count: request.messages.length,
  ...(maySearch(request) ? { web_search: true as const } : {}),
});

/**
 * Returns a function that returns a call's usage with its cost. Its first use also adds the usage to the run.
 */
function countOnce(run: MutableRun, { name }: Model) {
  let isCounted = false;
  return (used: () => Usage | undefined): Usage | undefined => {
    if (isCounted) return undefined;
    isCounted = true;
    const usage = used();
    if (!usage) return undefined;
    const cost = run.costOf(name, usage);
    const counted = cost === undefined ? usage : { ...usage, cost };
    run.usage = addUsage(run.usage, counted);
    return counted;
  };
}

/** Reports the events that `ask` yields to `partial`, including deltas that bypass all layers. */
export function trackWords(ask: CallModel, partial: PartialMessage): CallModel {
  return (request, deltas) => tap(ask(request, tapDeltas(deltas, partial.see)), partial.see);
}

function remark(run: MutableRun, { name: model }: Model, about: Remark | undefined): void {
  if (!about) return;
  const { code, message } = about;
  run.onFailure({
    what: "reply",
    code,
    model,
    error: `The provider of \`${model}\` ${message}`,
  });
}

/** Returns a message for the log if the provider's count of output tokens is implausibly low. */
function lowCount(reported: Usage, counted: Usage): Remark | undefined {
  if (reported.output_tokens === 0 || reported.output_tokens >= counted.output_tokens / 2) return undefined;
  const message = `counted ${reported.output_tokens} tokens for an answer of about ${counted.output_tokens} tokens. The estimate is used instead.`;
  return { code: "low_count", message };
}

/** Returns the id of the first attempt of a model call, because all attempts share one span. */
function spanOf(id: string, run: MutableRun): string {
  const { first, isRepeated } = run.modelCall;
  run.modelCall = { first: isRepeated ? first : id, isRepeated: false };
  return run.modelCall.first;
}

const CANCELLED = new AppError("cancelled", "Cancelled before the model had finished.");

/** If the reason for an abort is an error, such as a timeout or a lost lease, reports that error. */
const reasonOf = ({ reason }: AbortSignal) => (reason instanceof AppError ? reason : CANCELLED);

function asMessage(id: string, model: string, reply: ModelReply): AssistantMessage {
  const { content, tool_calls, reasoning, usage, sources, citations = [], provider_blocks = [] } = reply;
  return {
    id,
    created_at: isoTime(),
    role: "assistant",
    content,
    ...(tool_calls.length > 0 ? { tool_calls: distinct(tool_calls) } : {}),
    ...(reasoning.length > 0 ? { reasoning: [...reasoning] } : {}),
    ...(sources ? { sources: [...sources] } : {}),
    ...(citations.length > 0 ? { citations: [...citations] } : {}),
    ...(provider_blocks.length > 0 ? { provider_blocks: [...provider_blocks] } : {}),
    model,
    usage,
  };
}

/** Replaces every repeated id with a new one, because calls are identified by id. */
function distinct(calls: readonly ToolCall[]): ToolCall[] {
  const taken = new Set<string>();
  return calls.map((call) => {
    let { id } = call;
    for (let n = 2; taken.has(id); n++) id = `${call.id}_${n}`;
    taken.add(id);
    return { ...call, id };
  });
}

/** Some providers return empty replies. Others reject threads that contain an empty message. */
export const isEmpty = (message: AssistantMessage) => isBlank(message.content) && !message.tool_calls;

/**
 * The order of the system prompt's blocks. The blocks that change least come first, so providers can cache as
 * much as possible.
 */
const KINDS: readonly SystemBlock["cache"][] = ["static", "semi", "dynamic"];

/** The position of blocks whose place is not in `PLACES`. */
const ANYWHERE = "instructions";
/** The order of blocks within one kind. */
const PLACES: readonly string[] = [
  "identity",
  "completion_protocol",
  "notes_protocol",
  ANYWHERE,
  "behavioral_constraints",
  "project_context",
  "skills",
  "available_skills",
  "memory",
  "available_agents",
];

/** Sorts system blocks. Blocks with the same place keep their order. */
export function inOrder(blocks: readonly SystemBlock[]): SystemBlock[] {
  return blocks.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function placeOf({ id, cache, place = id }: SystemBlock): number {
  const known = PLACES.includes(place) ? place : ANYWHERE;
  return KINDS.indexOf(cache) * PLACES.length + PLACES.indexOf(known);
}

/**
 * Returns a block with the subagent's name. The block is `dynamic` although it never changes, so the blocks
 * that all instances share come before it.
 */
export function instanceBlock({ name }: Lineage): SystemBlock {
  const text = xmlTag("identity", `You are \`${name}\`, an agent that works for another agent.`);
  return { id: "identity", text, cache: "dynamic" };
}
