// A vendor's wire, as far as the fake server needs it.

import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { Answer, Failure } from "./script.ts";

export interface Refusal {
  readonly status: number;
  /** The body, in the vendor's form. */
  readonly body: unknown;
}

export interface Asked {
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as it came. */
  readonly text: string;
  readonly body: unknown;
}

export interface Vendor {
  readonly name: "anthropic" | "openai" | "azure" | "bedrock" | "gemini" | "vertex";
  readonly path: RegExp;
  /** Default: that of server-sent events. */
  readonly contentType?: string;
  /** The faults for which the real one would answer 4xx. */
  refuse(asked: Asked): Refusal | undefined;
  fail(failure: Failure, answer: Answer): Refusal;
  /** The whole stream, frame by frame, with all that frames it. */
  frames(answer: Answer, asked: Asked): readonly (string | Buffer)[];
  /** An error in the middle of a stream. */
  errorFrame(failure: Failure): string | Buffer;
  /** What stands in `raw` of an answer. Default: the data of a server-sent event. */
  rawFrame?(data: string): Buffer;
}

/** The first thing wrong with `body`, in the words that pydantic has for it. */
export function shapeFault(schema: z.ZodType, body: unknown): string | undefined {
  const issue = schema.safeParse(body).error?.issues[0];
  return issue && worded(issue);
}

function worded(issue: z.core.$ZodIssue): string {
  // A union lists the faults of each of its forms; the form that matched furthest was meant.
  if (issue.code === "invalid_union") {
    const nested = issue.errors.flat().sort((a, b) => b.path.length - a.path.length)[0];
    if (nested) return worded({ ...nested, path: [...issue.path, ...nested.path] });
  }
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys")
    return `${[path, issue.keys[0]].filter(Boolean).join(".")}: Extra inputs are not permitted`;
  const missing = issue.code === "invalid_type" && issue.message.includes("received undefined");
  return `${path}: ${missing ? "Field required" : issue.message}`;
}

/** The first sentence that a list of checks has to say. */
export function firstFault<T>(checks: readonly ((of: T) => string | undefined)[], of: T): string | undefined {
  for (const check of checks) {
    const fault = check(of);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** What keeps a schema from being enforced: an object that is not closed, or a keyword that the vendor does not know. */
export function unsupportedIn(schema: unknown, isUnknown: (key: string) => boolean): string | undefined {
  if (Array.isArray(schema)) return schema.map((each) => unsupportedIn(each, isUnknown)).find(Boolean);
  const { data } = z.record(z.string(), z.unknown()).safeParse(schema);
  if (!data) return undefined;
  const isObject = data.type === "object";
  if (isObject && data.additionalProperties !== false)
    return "For 'object' type, 'additionalProperties' must be explicitly set to false";
  const key = Object.keys(data).find(isUnknown);
  if (key) return `property '${key}' is not supported`;
  const inner = [...Object.values(Object(data.properties)), data.items, ...Object.values(Object(data.anyOf))];
  return inner.map((each) => unsupportedIn(each, isUnknown)).find(Boolean);
}
