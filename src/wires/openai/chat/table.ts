// Converts a run to the chunks of an OpenAI chat completion, or to a whole completion.

import { NO_USAGE, type Usage } from "../../../agent/core/message.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import { asksToApprove } from "../../../protocol/interrupt.ts";
import { readTurn } from "../../../protocol/turn-reader.ts";
import type { Frame } from "../../../server/http/sse.ts";
import type { Fold } from "../../fold.ts";
import { approvalText, questionText } from "../../words.ts";
import { forcedCallId } from "../pairing.ts";

export interface ProjectOptions {
  /** The agent's name. */
  readonly model: string;
  /** True if an additional last chunk contains the usage. */
  readonly includesUsage: boolean;
  /** True if the client requests only the run's output. It is checked and then sent at the end. */
  readonly outputOnly: boolean;
  /** The client's function whose arguments are the output. */
  readonly answersAs?: string;
}

interface Delta {
  readonly role?: "assistant";
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
}

/** A part of a completion. The last part is the finish or an error. */
type Piece =
  | { readonly delta: Delta }
  | { readonly finish: string; readonly usage: Usage | undefined }
  | { readonly error: { readonly code: string; readonly message: string } };

/** Yields the stream's frames: chunks, then `[DONE]`. After a failure, an `error` replaces `[DONE]`. */
export function project({ model, includesUsage, ...answer }: ProjectOptions): Fold {
  const read = createTable(answer);
  let framesOf: ((piece: Piece) => Frame[]) | undefined;
  return (event, run) => {
    framesOf ??= frameMaker({ ...headOf(run, model), object: "chat.completion.chunk" }, includesUsage);
    return read(event, run).flatMap(framesOf);
  };
}

/** `base` has the fields that all chunks of a completion share. */
function frameMaker(base: object, includesUsage: boolean) {
  const chunk = (delta: Delta, finish_reason: string | null): Frame => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
    return { data: JSON.stringify({ ...base, choices, ...(includesUsage ? { usage: null } : {}) }) };
  };
  return (piece: Piece): Frame[] => {
    if ("delta" in piece) return [chunk(piece.delta, null)];
    if ("error" in piece) return [{ data: JSON.stringify({ error: errorOf(piece.error) }) }];
    const usage = { ...base, choices: [], usage: usageOf(piece.usage) };
    const last = includesUsage ? [{ data: JSON.stringify(usage) }] : [];
    return [chunk({}, piece.finish), ...last, { data: "[DONE]" }];
  };
}

/** Collects a whole completion. `completion` is complete after the run's last event. */
export function collect({ model, ...answer }: Omit<ProjectOptions, "includesUsage">) {
  const read = createTable(answer);
  let content = "";
  let reasoning = "";
  let finish = "stop";
  let usage: Usage | undefined;
  let error: { readonly code: string; readonly message: string } | undefined;
  const calls: object[] = [];
  const add = (piece: Piece) => {
    if ("error" in piece) error = piece.error;
    else if ("finish" in piece) ({ finish, usage } = piece);
    else {
      content += piece.delta.content ?? "";
      reasoning += piece.delta.reasoning_content ?? "";
      calls.push(...(piece.delta.tool_calls ?? []));
    }
  };
  return {
    see(event: StreamEvent, run: RunRecord): void {
      for (const piece of read(event, run)) add(piece);
    },
    error: () => error,
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
        choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
        usage: usageOf(usage),
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

function createTable({ outputOnly, answersAs }: Pick<ProjectOptions, "outputOnly" | "answersAs">) {
  let hasText = false;
  let isNewText = false;
  let calls = 0;

  const say = (text: string): Piece[] => {
    // A blank line separates the run's second message, or the text after a failed attempt.
    const gap = hasText && isNewText ? "\n\n" : "";
    hasText = true;
    isNewText = false;
    return [{ delta: { content: gap + text } }];
  };
  const sayApart = (text: string): Piece[] => {
    isNewText = true;
    return say(text);
  };
  const call = (id: string, name: string, args: object): Piece[] => {
    const made = { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    return [{ delta: { tool_calls: [{ index: calls++, ...made }] } }];
  };
  const answer = (output: object, run: RunRecord): Piece[] =>
    answersAs === undefined
      ? say(JSON.stringify(output))
      : call(forcedCallId(run, answersAs), answersAs, output);

  return readTurn<Piece, RunRecord>({
    run: () => [{ delta: { role: "assistant", content: "" } }],
    step({ retries }) {
      isNewText = true;
      return retries && hasText ? [{ delta: { content: "\n\n…" } }] : [];
    },
    delta(kind, text) {
      if (kind === "thought") return [{ delta: { reasoning_content: text } }];
      return outputOnly ? [] : say(text);
    },
    ask(question) {
      const { kind, call_id, name, args, asked_by } = question;
      if (kind === "tool" && !asked_by) return call(call_id, name, args);
      return sayApart(asksToApprove(kind) ? approvalText(question) : questionText(question));
    },
    end({ as, reason, message, usage, output }, run) {
      if (as === "failed") return [{ error: { code: reason, message } }];
      if (as === "limit") return [...sayApart(message), { finish: "stop", usage }];
      const answered = outputOnly && output ? answer(output, run) : [];
      const finish = calls > 0 ? "tool_calls" : (FINISH[reason] ?? "stop");
      return [...answered, { finish, usage }];
    },
  });
}
