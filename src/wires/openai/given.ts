// Input that both APIs share: refusals by field name, parts, and the client's tools.

import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { type Content, Part } from "../../agent/core/message.ts";
import type { ClientTool } from "../../agent/core/records.ts";
import { check, sentence } from "../../lib/check.ts";
import { clientToolsOf, type DescribedTool } from "../client-tools.ts";

/** `param` is the name of the field in the request. */
export const refused = (param: string, message: string) =>
  new AppError("invalid_request", `${param}: ${message}`, { details: { param } });

const HEADERS = ["x-openwebui-chat-id", "x-conversation-id", "x-thread-id"];

/** Returns the name of the conversation, if a front end sends one outside the API. */
export function conversationOf(
  headers: IncomingHttpHeaders,
  metadata?: Readonly<Record<string, unknown>> | null,
): string | undefined {
  const named = [...HEADERS.map((name) => headers[name]), metadata?.thread_id, metadata?.conversation_id];
  return named.find((each): each is string => typeof each === "string" && isFilled(each));
}

/**
 * Returns false for an unfilled placeholder, such as `{{CHAT_ID}}`, which front ends send if they do not have the
 * value.
 */
export const isFilled = (value: string): boolean => value !== "" && !/^\{\{[^{}]*\}\}$/.test(value);

/** Returns the text of a message, without its images and files. */
export function wordsOf(
  content: string | readonly { readonly text?: string | null | undefined }[] | null | undefined,
): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap(({ text }) => text ?? []).join("\n");
}

const EFFORTS = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 32_768 } as const;

/** Returns the maximum number of reasoning tokens for an effort, or undefined for an unknown effort. */
export const thinkingOf = (effort: string | null | undefined): number | undefined =>
  effort && Object.hasOwn(EFFORTS, effort) ? EFFORTS[effort as keyof typeof EFFORTS] : undefined;

/** Throws `invalid_request` with the tool's position in `tools`. */
export const clientTools = (given: readonly DescribedTool[]): ClientTool[] | undefined =>
  clientToolsOf(given, (index, fault) => refused(`tools[${index}]`, fault));

/**
 * Returns the schema of the answer that a format requests, or undefined for text. Throws `invalid_request` for other
 * formats.
 */
export function outputSchema(
  { type }: { readonly type: string },
  schema: Record<string, unknown> | undefined,
  param: string,
): Record<string, unknown> | undefined {
  if (type === "text") return undefined;
  if (type === "json_object") return { type: "object" };
  if (type === "json_schema" && schema) return schema;
  throw refused(param, "only `text`, `json_object` and `json_schema` with its `schema` are supported.");
}

/** The name of the header that lists the ignored fields of a request. */
export const IGNORED = "x-ignored-parameters";

/** The maximum number of ignored fields to list. */
const MAX_NAMED = 20;
const FIELD = /^[\w.-]{1,64}$/;

/** Returns the value of the header that lists fields without effect, such as `top_p`, for the client. */
export function ignoredFields(body: object, known: Readonly<Record<string, unknown>>): string | undefined {
  const names = Object.entries(body).flatMap(([name, value]) =>
    Object.hasOwn(known, name) || value === null || !FIELD.test(name) ? [] : [name],
  );
  return names.length === 0 ? undefined : names.slice(0, MAX_NAMED).join(", ");
}

/** Throws `invalid_request` for an invalid part of a message. */
export function partFrom(part: unknown, param: string): Part {
  const checked = check(Part, part);
  if ("value" in checked) return checked.value;
  throw refused(param, checked.faults.map((fault) => sentence(fault)).join(", "));
}

/** Omits an empty text, which clients send along with an image. A single text becomes a string, not a list of parts. */
export function contentFrom<P extends { readonly type: string; readonly text?: unknown }>(
  sent: readonly P[],
  partOf: (part: P, index: number) => Part,
): Content {
  const isEmpty = ({ type, text }: P) => type.endsWith("text") && text === "";
  const parts = sent.flatMap((part, index) => (isEmpty(part) ? [] : [partOf(part, index)]));
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" ? first.text : parts;
}

/** Returns the arguments of a call in a client's history, or an empty object if they are not a JSON object. */
export function argumentsOf(text: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text || "{}"));
  } catch {
    return {};
  }
}

export const isSystem = (role: string) => role === "system" || role === "developer";
