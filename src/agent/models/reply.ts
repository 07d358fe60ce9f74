// The interface of the readers of all dialects, and conversions of providers' values that the readers share.

import { isNestedDeeper } from "../../lib/json.ts";
import { firstChars } from "../../lib/text.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { joinedArguments, MAX_ARGUMENT_DEPTH, readArguments } from "../core/call-arguments.ts";
import type { ToolCall, Usage } from "../core/message.ts";
import type { ModelReply } from "../core/model.ts";
import { newCallId } from "../core/new-ids.ts";

/** One event from a provider, of any kind. */
export type ProviderEvent = Readonly<Record<string, unknown>>;

/** Reads one reply from a provider, event by event. */
export interface ReplyReader {
  /** Adds the resulting events to `out`. Throws `ProviderError` when the event is an error. */
  take(event: ProviderEvent, out: StreamEvent[]): void;
  /** Records that the stream has announced its end. */
  close(): void;
  /** True if no more events need to be read. */
  readonly ended: boolean;
  /** The usage that the provider has reported so far. */
  readonly usage: Usage;
  /**
   * Returns the reply. Call it once, after the reply or its stream has ended cleanly. Adds held-back events
   * to `out`. Throws `ProviderError` when the reply was cut off or withdrawn by the provider.
   */
  finish(out: StreamEvent[]): ModelReply;
}

const MAX_NAME_LENGTH = 256;

/** Returns a string from a provider. Compatible servers may send numbers. Any other value counts as empty. */
export function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}

/** Returns a piece of JSON text. Compatible servers may send the value itself. */
export function jsonIn(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : textIn(value);
}

/** Returns the name or the id of a tool call, or an empty string if the provider sent none. */
export const nameIn = (value: unknown) => firstChars(textIn(value).toWellFormed(), MAX_NAME_LENGTH);

/** True if a value from the provider can be stored unchanged with the message. */
export function isKeepable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !isNestedDeeper(value, MAX_ARGUMENT_DEPTH);
}

/** A tool call as received. */
interface ReadCall {
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

/**
 * Returns one call, or several if a server joined their arguments. Only the first of several keeps the id.
 * With `cut`, the model ran out of tokens during this call, so missing arguments do not mean an empty object.
 */
export function toToolCalls({ id, name, json }: ReadCall, cut: boolean): ToolCall[] {
  const read = readArguments(json);
  const malformed = { id, name, args: {}, malformed: json };
  if (cut && json.trim() === "") return [malformed];
  if ("args" in read) return [{ id, name, args: read.args }];
  const joined = joinedArguments(json);
  return joined?.map((args, at) => ({ id: at === 0 ? id : newCallId(), name, args })) ?? [malformed];
}
