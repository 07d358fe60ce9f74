// Adds messages and results to spans as attributes if `traces.contents` is on. Their size is limited, because a trace
// is not meant as a second copy of the thread.

import type { Attributes } from "@opentelemetry/api";
import { type AssistantMessage, type Message, textOf } from "../../agent/core/message.ts";
import type { ModelRequest, StopReason } from "../../agent/core/model.ts";
import type { RunListener } from "../../engine/runs/services.ts";
import { firstChars } from "../../lib/text.ts";
import { CONTENTS, FINISH_REASONS, type MessagePart, PARTS } from "./conventions.ts";

/** The maximum number of characters in a text, a call's arguments or a result. Longer values are cut and end with `…`. */
const MAX_TEXT = 8_000;
/** The maximum number of characters in a list. The oldest messages that do not fit are left out. */
const MAX_LIST = 32_000;

export interface FollowedContents {
  readonly listener: Pick<RunListener, "onModelRequest" | "onModelReply">;
  /** Adds a message of the thread. */
  hear(message: Message): void;
  /** Returns the attributes of the model call that has just ended. */
  ofModelCall(): Attributes;
  /** Returns the attributes of the run: its input and its last message. */
  ofRun(): Attributes;
}

export function followContents(input: readonly Message[]): FollowedContents {
  let call: Attributes = {};
  let stopReason: StopReason = "end_turn";
  let last: AssistantMessage | undefined;
  return {
    listener: {
      onModelRequest(request) {
        call = inputAttributes(request);
      },
      onModelReply(reply) {
        stopReason = reply.stop_reason;
        call = { ...call, ...outputAttributes(reply.message, stopReason) };
      },
    },
    hear(message) {
      if (message.role === "assistant") last = message;
    },
    ofModelCall: () => call,
    ofRun: () => ({
      ...(input.length > 0 ? inputAttributes({ messages: input }) : {}),
      ...(last ? outputAttributes(last, stopReason) : {}),
    }),
  };
}

/** Returns the attributes of a model's input, or of an agent's input without `system`. */
function inputAttributes({
  system = [],
  messages,
}: Partial<Pick<ModelRequest, "system">> & Pick<ModelRequest, "messages">): Attributes {
  const blocks = fitting(system.values().map(({ text }) => JSON.stringify(PARTS.text(cut(text)))));
  const newest = fitting(messages.toReversed().values().map(written));
  return {
    ...(system.length > 0 ? { [CONTENTS.system]: listOf(blocks) } : {}),
    [CONTENTS.input]: listOf(newest.toReversed()),
    ...(newest.length < messages.length ? { [CONTENTS.leftOut]: messages.length - newest.length } : {}),
  };
}

function outputAttributes(message: AssistantMessage, stopReason: StopReason): Attributes {
  const { role, parts } = JSON.parse(written(message)) as { role: string; parts: unknown[] };
  const said = JSON.stringify({ role, parts, finish_reason: FINISH_REASONS[stopReason] });
  return { [CONTENTS.output]: listOf([said]) };
}

export const argumentAttributes = (args: unknown): Attributes => ({
  [CONTENTS.arguments]: cut(JSON.stringify(args)),
});

export const resultAttributes = (output: string, error: string | undefined): Attributes => ({
  [CONTENTS.result]: cut(resultOf(output, error)),
});

const resultOf = (output: string, error: string | undefined) => [error, output].filter(Boolean).join("\n");

const NAMES: ReadonlySet<string> = new Set(Object.values(CONTENTS));

/** Returns how many characters of a span's attributes are contents. */
export function contentsLength(attributes: Attributes): number {
  let length = 0;
  for (const name of NAMES) length += String(attributes[name] ?? "").length;
  return length;
}

export const withoutContents = (attributes: Attributes): Attributes =>
  Object.fromEntries(Object.entries(attributes).filter(([name]) => !NAMES.has(name)));

const written = (message: Message): string =>
  `{"role":"${message.role}","parts":${listOf(fitting(partsOf(message).map((part) => JSON.stringify(part))))}}`;

function* partsOf(message: Message): Generator<MessagePart, undefined> {
  const content = textOf(message.content);
  if (message.role === "tool") {
    yield PARTS.result(message.tool_call_id, cut(resultOf(content, message.error)));
    return;
  }
  if (message.role === "assistant")
    for (const { text } of message.reasoning ?? []) yield PARTS.reasoning(cut(text));
  if (content !== "") yield PARTS.text(cut(content));
  if (message.role === "assistant")
    for (const { id, name, args } of message.tool_calls ?? []) yield PARTS.call(id, name, shortened(args));
}

/** Returns the arguments unchanged, or the beginning of their JSON. */
function shortened(args: unknown): unknown {
  const json = JSON.stringify(args);
  return json.length > MAX_TEXT ? cut(json) : args;
}

const cut = (text: string) => (text.length > MAX_TEXT ? `${firstChars(text, MAX_TEXT)}…` : text);

const listOf = (items: readonly string[]) => `[${items.join(",")}]`;

/** Returns as many of the first items as fit into a list. */
function fitting(items: Iterable<string>): string[] {
  const fit: string[] = [];
  let room = MAX_LIST;
  for (const item of items) {
    room -= item.length + 1;
    if (room < 0) break;
    fit.push(item);
  }
  return fit;
}
