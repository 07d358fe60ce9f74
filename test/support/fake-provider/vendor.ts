// A vendor's wire, as far as the fake server needs it.

import type { IncomingHttpHeaders } from "node:http";
import type { z } from "zod";
import type { Answer, Failure } from "./script.ts";

export interface Refusal {
  readonly status: number;
  /** The body, in the vendor's form. */
  readonly body: unknown;
}

export interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface Vendor {
  readonly name: "anthropic" | "openai";
  readonly path: RegExp;
  /** The faults for which the real one would answer 4xx. */
  refuse(asked: Asked): Refusal | undefined;
  fail(failure: Failure): Refusal;
  /** The whole stream, frame by frame, with all that frames it. */
  frames(answer: Answer, asked: Asked): string[];
  /** An error in the middle of a stream. */
  errorFrame(failure: Failure): string;
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
