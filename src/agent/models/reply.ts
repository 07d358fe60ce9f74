// Shared by the readers of all dialects: their interface, and the values that providers send.

import { isNestedDeeper } from "../../lib/json.ts";
import { firstChars } from "../../lib/text.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { joinedArguments, MAX_ARGUMENT_DEPTH, readArguments } from "../core/call-arguments.ts";
import type { ToolCall, Usage } from "../core/message.ts";
import type { ModelReply } from "../core/model.ts";
import { newCallId } from "../core/new-ids.ts";

/** One event of a provider's, of any kind. */
export type ProviderEvent = Readonly<Record<string, unknown>>;

/** Reads one reply of a provider, event by event. */
export interface ReplyReader {
  /** Adds what one event tells to `out`. Throws `ProviderError` when the event is an error. */
  take(event: ProviderEvent, out: StreamEvent[]): void;
  /** The stream has said that it is over. */
  close(): void;
  /** Whether nothing more is to be read. */
  readonly ended: boolean;
  /** What the provider has counted so far. */
  readonly usage: Usage;
  /**
   * The reply; to be asked once, when it has ended or its stream has come to a clean end. Adds to `out` what was still to be
   * shown. Throws `ProviderError` when the reply was cut, or its provider took it back.
   */
  finish(out: StreamEvent[]): ModelReply;
}

const MAX_NAME_LENGTH = 256;

/** A text of the provider's. Compatible servers send numbers for texts; anything else is no text. */
export function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}

/** A piece of JSON. Compatible servers send the whole value instead of its text. */
export function jsonIn(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : textIn(value);
}

/** The name or the id of a tool call; empty when the provider gave none. */
export const nameIn = (value: unknown) => firstChars(textIn(value).toWellFormed(), MAX_NAME_LENGTH);

/** Whether a value of the provider's may be kept with the message as it is. */
export function isKeepable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !isNestedDeeper(value, MAX_ARGUMENT_DEPTH);
}

/** A tool call as it came. */
interface ReadCall {
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

/**
 * One call, or each of those whose arguments a server has joined: only the first of them has the id. `cut`: the model's tokens ran out
 * while it wrote this one. Then no arguments are not the same as none.
 */
export function toToolCalls({ id, name, json }: ReadCall, cut: boolean): ToolCall[] {
  const read = readArguments(json);
  const malformed = { id, name, args: {}, malformed: json };
  if (cut && json.trim() === "") return [malformed];
  if ("args" in read) return [{ id, name, args: read.args }];
  const joined = joinedArguments(json);
  return joined?.map((args, at) => ({ id: at === 0 ? id : newCallId(), name, args })) ?? [malformed];
}
