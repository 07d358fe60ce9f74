// What a child reports with `task_complete`: the shape that the model is asked for, and other shapes that are accepted.

import { z } from "zod";
import { firstChars } from "../../lib/cut.ts";

const MAX_ENTRIES = 100;
const MAX_ENTRY_CHARS = 500;

const texts = z.array(z.string());

export const CompletionFields = z.object({
  status: z.enum(["completed", "failed"]),
  summary: z.string().min(1).describe("What was done, found or decided; or why it could not be."),
  files_modified: texts.optional().describe("Their paths."),
  tests_run: texts.optional().describe("Which tests were run, and how each ended."),
  caveats: z.string().optional().describe("What the agent that continues the work must know."),
});
export type CompletionFields = z.infer<typeof CompletionFields>;

const STATUS: Readonly<Record<string, CompletionFields["status"]>> = {
  ...{ complete: "completed", success: "completed", succeeded: "completed", done: "completed" },
  ...{ failure: "failed", error: "failed", incomplete: "failed" },
};

/**
 * Accepts a text where a list is expected and the reverse, so that no report is lost because of its shape. Long lists are
 * cut.
 */
export function asCompletion(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { status, summary, files_modified, tests_run, caveats, ...others } = args;
  const optional = {
    files_modified: listOf(files_modified),
    tests_run: listOf(tests_run),
    caveats: textOf(caveats),
  };
  const filled = Object.entries(optional).filter(([, value]) => value.length > 0);
  return {
    ...others,
    status:
      typeof status === "string"
        ? (STATUS[status.trim().toLowerCase()] ?? status.trim().toLowerCase())
        : status,
    ...(isNothing(summary) ? {} : { summary: textOf(summary) }),
    ...Object.fromEntries(filled),
  };
}

const isNothing = (value: unknown) => value === undefined || value === null;

function listOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list
    .map(textOf)
    .filter((text) => text !== "")
    .slice(0, MAX_ENTRIES)
    .map((text) => firstChars(text, MAX_ENTRY_CHARS));
}

function textOf(value: unknown): string {
  if (isNothing(value)) return "";
  if (Array.isArray(value)) return value.map(textOf).filter(Boolean).join("\n");
  return (typeof value === "string" ? value : JSON.stringify(value)).trim();
}
