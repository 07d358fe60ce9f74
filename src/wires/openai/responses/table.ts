// Converts a run to the numbered events of an OpenAI response, and to the response itself.

import {
  addUsage,
  NO_USAGE,
  type ToolCall,
  type ToolMessage,
  type Usage,
} from "../../../agent/core/message.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import type { End } from "../../../protocol/end.ts";
import type { EventData } from "../../../protocol/event.ts";
import { asksToApprove, type Interrupt } from "../../../protocol/interrupt.ts";
import { readTurn } from "../../../protocol/turn-reader.ts";
import type { Frame } from "../../../server/http/sse.ts";
import type { Fold } from "../../fold.ts";
import { forcedCallId } from "../pairing.ts";
import { citedIn, citing } from "./citations.ts";
import {
  callItem,
  functionCall,
  type Item,
  type ItemStatus,
  messageItem,
  questionItem,
  reasoningIdOf,
  reasoningItem,
  summaryPart,
  textPart,
} from "./history.ts";
import { responseIdOf } from "./ids.ts";

/** The fields of a request that its own responses repeat. Later readers do not see them. */
export interface Echo {
  readonly previous_response_id?: string | null;
  readonly instructions?: string | null;
  readonly background?: boolean;
  readonly store?: boolean;
  readonly max_output_tokens?: number | null;
  readonly temperature?: number | null;
  readonly reasoning?: object | null;
  readonly tools?: readonly object[];
}

export interface ProjectOptions {
  readonly echo?: Echo;
  /** The number of the last event that this reader has. */
  readonly after?: number;
  /** The client's function whose arguments are the run's output. The agent's other text is not sent. */
  readonly answersAs?: string;
}

export interface ResponseFold {
  /** Returns the frames for an event. */
  readonly see: Fold;
  /**
   * Returns the response after all events that have been read so far. `run` has the values that no event contains yet.
   */
  response(run: RunRecord): ReturnType<typeof responseOf>;
}

/** A text item in progress. */
interface OpenText {
  readonly id: string;
  readonly index: number;
  /** The part of a delta between its number and its text. */
  readonly head: string;
  text: string;
}

/** The end of a response. */
interface ResponseEnd {
  readonly status: "completed" | "failed" | "cancelled" | "incomplete";
  readonly error?: { readonly message: string };
  readonly incomplete?: { readonly reason: string };
}

export function project({ echo = {}, after = -1, answersAs }: ProjectOptions): ResponseFold {
  const frames = numberedFrames(after);
  const output = outputOf(frames);
  const { emit } = frames;
  const { fresh, add, finish } = output;
  const cited = citing();
  const message = messageOf(frames, output, cited.in);
  const thought = thoughtOf(frames, output);
  let isBegun = false;
  let messageId = "";
  /** True if the model has finished the message. */
  let isWhole = false;
  let thoughts = 0;
  /** The response has the id of its first run. */
  let first: RunRecord | undefined;
  let outcome: ResponseEnd | undefined;
  let usage: Usage = NO_USAGE;
  const calls = new Map<string, Pick<ToolCall, "id" | "name" | "args">>();
  /** The calls that the client or a user has decided, by call id. */
  const approvals = new Map<string, string>();
  const ofClient = new Set<string>();
  const snapshot = (run: RunRecord) =>
    responseOf(first ?? run, { echo, output: output.items, outcome, isBegun, usage });

  const say = (delta: string) => {
    thought.close("completed");
    if (answersAs === undefined) message.say(messageId, delta);
  };
  const think = (delta: string) => thought.think(() => reasoningIdOf(messageId, thoughts++), delta);
  const close = (status: ItemStatus) => {
    thought.close(status);
    message.close(status);
  };
  const called = (result: ToolMessage) => {
    cited.see(result);
    const call = calls.get(result.tool_call_id);
    if (!call || ofClient.has(call.id)) return;
    const approval = approvals.get(call.id) ?? null;
    const done = { ...callItem(call, result, approval), id: fresh(`mcp_${call.id}`) };
    const index = add({ ...callItem(call, undefined, approval), id: done.id });
    const place = { item_id: done.id, output_index: index };
    const text = JSON.stringify(call.args);
    emit("response.mcp_call.in_progress", place);
    emit("response.mcp_call_arguments.delta", { ...place, delta: text });
    emit("response.mcp_call_arguments.done", { ...place, arguments: text });
    emit(`response.mcp_call.${result.error === undefined ? "completed" : "failed"}`, place);
    finish(index, done);
  };
  const ask = (question: Interrupt) => {
    const item = { ...questionItem(question) };
    const done = { ...item, id: fresh(item.id) };
    if (question.kind === "question") {
      message.say(done.id, textIn(done));
      return message.close("completed");
    }
    if (asksToApprove(question.kind)) return finish(add(done), done);
    call(done, question);
  };
  /** Adds a call of one of the client's functions. */
  const call = (item: Item, { name, args }: Pick<ToolCall, "name" | "args">) => {
    const index = add({ ...item, status: "in_progress", arguments: "" });
    const place = { item_id: item.id, output_index: index };
    const text = JSON.stringify(args);
    emit("response.function_call_arguments.delta", { ...place, delta: text });
    emit("response.function_call_arguments.done", { ...place, name, arguments: text });
    finish(index, item);
  };

  const begin = (run: RunRecord) => {
    if (isBegun) return;
    isBegun = true;
    first = run;
    emit("response.created", { response: snapshot(run) });
    emit("response.in_progress", { response: snapshot(run) });
  };
  const end = (run: RunRecord, how: ResponseEnd) => {
    begin(run);
    outcome = how;
    const type = how.status === "cancelled" ? "incomplete" : how.status;
    emit(`response.${type}`, { response: snapshot(run) });
  };
  const finished = (run: RunRecord, how: End) => {
    close(isWhole ? "completed" : "incomplete");
    usage = addUsage(usage, how.usage ?? NO_USAGE);
    // The response continues when its deferred result arrives.
    if (how.as === "waits") return;
    if (how.status === "interrupted") for (const question of how.questions) ask(question);
    if (answersAs !== undefined && how.output) {
      const id = forcedCallId(run, answersAs);
      call(functionCall(id, answersAs, how.output, "completed"), { name: answersAs, args: how.output });
    }
    end(run, outcomeOf(how));
  };
  const decided = ({ id }: EventData<"on_resume">) => {
    const [, kind, call = ""] = /^(approval|connect|tool)_(.*)$/s.exec(id) ?? [];
    if (kind === "approval" || kind === "connect") approvals.set(call, `mcpr_${call}`);
    if (kind === "tool") ofClient.add(call);
  };

  const read = readTurn<never, RunRecord>({
    run: begin,
    step({ id }) {
      message.close("completed");
      isWhole = false;
      messageId = id;
      thoughts = 0;
    },
    delta: (kind, text) => (kind === "text" ? say(text) : think(text)),
    // A complete text stays open until its message arrives, which has the provider's citations. They may come from
    // a search of an earlier call.
    stepEnd({ failed }) {
      isWhole = !failed;
      if (failed) close("incomplete");
      else thought.close("completed");
    },
    assistant(said) {
      const { tool_calls = [] } = said;
      message.close("completed", citedIn(said));
      if (tool_calls.length === 0) cited.clear();
      // The messages before the first model call are the input, which the client already has.
      if (messageId) for (const call of tool_calls) calls.set(call.id, call);
    },
    result: called,
    toolStart(name, { call_id: id, args }) {
      calls.set(id, { id, name, args });
    },
    answered: decided,
    end: (how, run) => finished(run, how),
  });
  return {
    see(event, run) {
      if (!outcome) read(event, run);
      return frames.take();
    },
    response: snapshot,
  };
}

/** Numbers the frames. A reader that reconnects already has the frames up to `after`. */
function numberedFrames(after: number) {
  let sequence = 0;
  let frames: Frame[] = [];
  const emit = (type: string, fields: object) => {
    const sequence_number = sequence++;
    if (sequence_number <= after) return;
    frames.push({ event: type, data: JSON.stringify({ type, sequence_number, ...fields }) });
  };
  /** Most frames of a stream are deltas, in which only the text is new. */
  const grow = (type: string, open: OpenText, delta: string, tail: string) => {
    open.text += delta;
    const number = sequence++;
    if (number > after)
      frames.push({
        event: type,
        data: `{"type":"${type}","sequence_number":${number},${open.head}${JSON.stringify(delta)}${tail}}`,
      });
  };
  /** Returns the frames since the last call. */
  const take = () => {
    const taken = frames;
    frames = [];
    return taken;
  };
  return { emit, grow, take };
}

type NumberedFrames = ReturnType<typeof numberedFrames>;

type ResponseOutput = ReturnType<typeof outputOf>;

/** The items of a response, in the order in which they start. */
function outputOf({ emit }: NumberedFrames) {
  const items: Item[] = [];
  const ids = new Set<string>();
  /** Makes ids unique, even if the run repeats itself after a crash. */
  const fresh = (id: string): string => {
    let free = id;
    for (let n = 2; ids.has(free); n++) free = `${id}_${n}`;
    ids.add(free);
    return free;
  };
  const add = (item: Item): number => {
    const output_index = items.push(item) - 1;
    emit("response.output_item.added", { output_index, item });
    return output_index;
  };
  const finish = (output_index: number, item: Item) => {
    items[output_index] = item;
    emit("response.output_item.done", { output_index, item });
  };

  const openText = (item: Item, field: "content_index" | "summary_index"): OpenText => {
    const index = add(item);
    const at = { item_id: item.id, output_index: index, [field]: 0 };
    return { id: item.id, index, text: "", head: `${JSON.stringify(at).slice(1, -1)},"delta":` };
  };
  return { items, fresh, add, finish, openText };
}

/** The message that a model is writing. */
function messageOf(
  { emit, grow }: NumberedFrames,
  { fresh, finish, openText }: ResponseOutput,
  citationsIn: (text: string) => readonly object[],
) {
  let open: OpenText | undefined;
  const begin = (id: string) => {
    const begun = openText(messageItem(fresh(id), "in_progress"), "content_index");
    emit("response.content_part.added", { ...placeOf(begun), content_index: 0, part: textPart("") });
    return begun;
  };
  return {
    /** `id` is the id of a message that starts with this delta. */
    say(id: string, delta: string): void {
      open ??= begin(id);
      grow("response.output_text.delta", open, delta, ',"logprobs":[]');
    },
    close(status: ItemStatus, cited: readonly object[] = []): void {
      if (!open) return;
      const { id, index, text } = open;
      const place = { ...placeOf(open), content_index: 0 };
      open = undefined;
      const annotations = [...cited, ...citationsIn(text)];
      for (const [annotation_index, annotation] of annotations.entries())
        emit("response.output_text.annotation.added", { ...place, annotation_index, annotation });
      emit("response.output_text.done", { ...place, text, logprobs: [] });
      const part = textPart(text, annotations);
      emit("response.content_part.done", { ...place, part });
      finish(index, messageItem(id, status, part));
    },
  };
}

/** The reasoning that a model is writing. */
function thoughtOf({ emit, grow }: NumberedFrames, { fresh, finish, openText }: ResponseOutput) {
  let open: OpenText | undefined;
  const begin = (id: string) => {
    const begun = openText(reasoningItem(fresh(id), "in_progress"), "summary_index");
    emit("response.reasoning_summary_part.added", {
      ...placeOf(begun),
      summary_index: 0,
      part: summaryPart(""),
    });
    return begun;
  };
  return {
    /** `nextId` is called when a thought starts. */
    think(nextId: () => string, delta: string): void {
      open ??= begin(nextId());
      grow("response.reasoning_summary_text.delta", open, delta, "");
    },
    close(status: ItemStatus): void {
      if (!open) return;
      const { id, index, text } = open;
      const place = { ...placeOf(open), summary_index: 0 };
      open = undefined;
      emit("response.reasoning_summary_text.done", { ...place, text });
      emit("response.reasoning_summary_part.done", { ...place, part: summaryPart(text) });
      finish(index, reasoningItem(id, status, summaryPart(text)));
    },
  };
}

const placeOf = ({ id, index }: OpenText) => ({ item_id: id, output_index: index });

const textIn = ({ content }: Item) => (content as [{ text: string }])[0].text;

function outcomeOf({ as, reason, message }: End): ResponseEnd {
  if (as === "cancelled") return { status: as };
  if (as === "failed" || as === "limit") return { status: "failed", error: { message } };
  if (reason === "max_tokens") return { status: "incomplete", incomplete: { reason: "max_output_tokens" } };
  return { status: "completed" };
}

interface FoldState {
  readonly echo: Echo;
  readonly output: readonly Item[];
  readonly outcome: ResponseEnd | undefined;
  readonly isBegun: boolean;
  readonly usage: Usage;
}

function responseOf(run: RunRecord, { echo, output, outcome, isBegun, usage }: FoldState) {
  const waits = run.status === "pending" && !isBegun;
  const { error, incomplete } = outcome ?? {};
  return {
    id: responseIdOf(run),
    object: "response" as const,
    created_at: Math.floor(Date.parse(run.created_at) / 1000),
    status: outcome?.status ?? (waits ? ("queued" as const) : ("in_progress" as const)),
    background: echo.background ?? null,
    error: error ? { code: "server_error", message: error.message } : null,
    incomplete_details: incomplete ?? null,
    instructions: echo.instructions ?? null,
    max_output_tokens: echo.max_output_tokens ?? null,
    model: run.agent,
    output: [...output],
    parallel_tool_calls: true,
    previous_response_id: echo.previous_response_id ?? null,
    conversation: { id: run.thread_id },
    reasoning: echo.reasoning ?? { effort: null, summary: null },
    store: echo.store ?? true,
    temperature: echo.temperature ?? null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: echo.tools ?? [],
    top_p: null,
    truncation: "disabled",
    usage: outcome ? usageOf(usage) : null,
    user: null,
    metadata: run.metadata,
  };
}

const usageOf = (usage: Usage) => ({
  input_tokens: usage.input_tokens,
  input_tokens_details: { cached_tokens: usage.cache_read_tokens },
  output_tokens: usage.output_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: usage.input_tokens + usage.output_tokens,
});
