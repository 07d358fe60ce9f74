// A model that plays a script, for the demo and tests. It streams, calls tools, thinks and fails like other models.

import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { readText } from "../../lib/read-text.ts";
import { MAX_YAML_BYTES, readYaml } from "../../lib/yaml/document.ts";
import { AppError, type ErrorCode } from "../core/errors.ts";
import { type Message, type ToolCall, textOf, Usage } from "../core/message.ts";
import type { Model, ModelReply, ModelRequest, StopReason } from "../core/model.ts";
import { type DeltaSink, mapEvents, type Stream } from "../core/stream.ts";

/** One answer of the model. `say` may contain `{{user}}`, the text of the most recent user message. */
export const Turn = z.strictObject({
  think: z.string().optional().describe("Thinking to stream, word by word."),
  say: z
    .string()
    .default("")
    .describe("Text to stream, word by word. `{{user}}` is the most recent user message."),
  call: z
    .array(
      z.strictObject({
        tool: z.string(),
        args: z.record(z.string(), z.unknown()).default({}),
        id: z.string().optional(),
        malformed: z.string().optional(),
      }),
    )
    .default([])
    .describe("Tool calls. `malformed` replaces the arguments with text that is not valid JSON."),
  fail: z
    .strictObject({
      code: z.string(),
      message: z.string().default("scripted"),
      retry_after_ms: z.number().optional(),
    })
    .optional()
    .describe("Error to return after all other output. A retry plays the same turn."),
  delay_ms: z.number().default(0).describe("Pause before each word and each call, in milliseconds."),
  stop_reason: z.enum(["max_tokens", "refusal"]).optional().describe("Reason why the answer ends."),
  usage: Usage.partial()
    .optional()
    .describe("Token counts. Default: a quarter of the answer's characters as `output_tokens`."),
});
export type Turn = z.input<typeof Turn>;

/** Returns the answer to `request`, which is the model's `call`-th request (from 0). */
export type Script = (request: ModelRequest, call: number) => Turn | undefined;

/**
 * Returns a model that answers its first call with the first turn, its second call with the second, and so
 * on.
 */
export function scriptedModel(script: readonly Turn[] | Script, name = "scripted:test"): Model {
  const turnOf: Script = typeof script === "function" ? script : (_, call) => script[call];
  let calls = 0;
  return {
    name,
    async *stream(request, deltas) {
      const call = calls++;
      const turn = turnOf(request, call);
      if (!turn) throw new AppError("model_rejected", `The script of \`${name}\` has no turn ${call + 1}.`);
      return yield* notTaken(play(Turn.parse(turn), request, call), deltas);
    },
  };
}

/**
 * Returns a model that plays a YAML file with a list of turns. It starts from the beginning for each user
 * message. It derives the next turn from the history, so it survives restarts.
 */
export function scriptedFile(path: string, name: string): Model {
  const turns = readScript(path, name);
  turns.catch(() => {}); // the first call reports the error
  return {
    name,
    async *stream(request, deltas) {
      const position = answersSinceUser(request.messages);
      const turn = (await turns)[position] ?? Turn.parse({ say: "That is all there is in my script." });
      const call = request.messages.filter((message) => message.role === "assistant").length;
      return yield* notTaken(play(turn, request, call), deltas);
    },
  };
}

/** Throws `config_invalid` with the problems of the file. */
async function readScript(path: string, name: string): Promise<z.output<typeof Turn>[]> {
  const read = await readText(path, MAX_YAML_BYTES);
  if ("fault" in read)
    throw new AppError("config_invalid", `The script \`${path}\` of the model \`${name}\` ${read.fault}.`);
  const document = readYaml(path, read.text, {});
  const checked = document.check(z.array(Turn).min(1));
  if ("value" in checked) return checked.value;
  const problems = document.linesOf(checked.problems).join("\n");
  throw new AppError("config_invalid", `The script of the model \`${name}\` is invalid.\n${problems}`);
}

const notTaken = <T>(stream: Stream<T>, deltas: DeltaSink | undefined): Stream<T> =>
  deltas ? mapEvents(stream, (delta) => (deltas(delta) ? [] : [delta])) : stream;

async function* play(turn: z.output<typeof Turn>, request: ModelRequest, call: number): Stream<ModelReply> {
  const pause = () =>
    turn.delay_ms > 0 ? sleep(turn.delay_ms, undefined, { signal: request.signal }) : undefined;
  request.signal.throwIfAborted();
  for (const word of words(turn.think ?? "")) {
    await pause();
    yield { event: "on_chat_model_stream", data: { reasoning_delta: word } };
  }
  const content = turn.say.replaceAll("{{user}}", () => lastUserText(request.messages));
  for (const word of words(content)) {
    await pause();
    yield { event: "on_chat_model_stream", data: { delta: word } };
  }
  const tool_calls = turn.call.map((made, index) => asToolCall(made, call, index));
  for (const [index, { id, name, args, malformed }] of tool_calls.entries()) {
    await pause();
    const args_delta = malformed ?? JSON.stringify(args);
    yield { event: "on_chat_model_stream", data: { tool_call: { index, id, name, args_delta } } };
  }
  if (turn.fail) {
    const { code, message, retry_after_ms } = turn.fail;
    // Scripts are trusted. An unknown code fails the test that uses it.
    throw new AppError(
      code as ErrorCode,
      message,
      retry_after_ms === undefined ? {} : { details: { retry_after_ms } },
    );
  }
  const stop_reason: StopReason = turn.stop_reason ?? (tool_calls.length > 0 ? "tool_use" : "end_turn");
  const reasoning = turn.think ? [{ text: turn.think }] : [];
  return { content, tool_calls, reasoning, stop_reason, usage: usageOf(turn, content) };
}

function asToolCall(made: z.output<typeof Turn>["call"][number], call: number, index: number): ToolCall {
  const { tool, args, malformed } = made;
  const id = made.id ?? `call_${call + 1}_${index + 1}`;
  return { id, name: tool, args, ...(malformed === undefined ? {} : { malformed }) };
}

function usageOf(turn: z.output<typeof Turn>, content: string): Usage {
  const { input_tokens = 0, output_tokens = Math.ceil(content.length / 4) } = turn.usage ?? {};
  const { cache_read_tokens = 0, cache_write_tokens = 0 } = turn.usage ?? {};
  return { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens };
}

const words = (text: string) => text.match(/\s*\S+\s*$|\s*\S+/g) ?? [];

function answersSinceUser(messages: readonly Message[]): number {
  const start = messages.findLastIndex((message) => message.role === "user");
  return messages.slice(start + 1).filter((message) => message.role === "assistant").length;
}

function lastUserText(messages: readonly Message[]): string {
  const message = messages.findLast(({ role }) => role === "user");
  return message ? textOf(message.content) : "";
}
