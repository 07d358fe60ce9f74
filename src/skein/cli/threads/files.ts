// The export format. `<thread>/metadata.json` describes a thread, and `<thread>/history.jsonl` contains its messages, one per
// line, oldest first. Times are ISO 8601 in UTC.

import { join } from "node:path";
import { z } from "zod";
import { Metadata } from "../../../agent/core/records.ts";
import { Id } from "../../../protocol/ids.ts";

export const metadataFile = (dir: string, id: string) => join(dir, id, "metadata.json");
export const historyFile = (dir: string, id: string) => join(dir, id, "history.jsonl");

/** The state keys to export. Open interrupts and stored permission rules are not exported. */
const CARRIED: ReadonlySet<string> = new Set(["todos", "files", "summary"]);

export const carried = (state: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(state).filter(([key]) => CARRIED.has(key)));

export const ThreadFile = z.object({
  session_id: Id,
  agent_type: z.string().max(64).optional(),
  title: z.string().max(256).optional(),
  metadata: Metadata.default({}),
  parent_session_id: Id.optional(),
  parent_tool_use_id: z.string().optional(),
  replaced_message_id: z
    .string()
    .optional()
    .describe("Only for a branch: the id of the first message that was replaced."),
  parent_run_id: z.string().default(""),
  background: z.boolean().default(false),
  child_session_ids: z.array(Id).default([]),
  provider: z.string().optional().describe("Provider of the last message that a model wrote."),
  model: z.string().optional(),
  created_at: z.iso.datetime().optional(),
  updated_at: z.iso.datetime().optional(),
  state: z
    .record(z.string(), z.unknown())
    .default({})
    .describe("Todos, files and the summary of old messages."),
});
export type ThreadFile = z.infer<typeof ThreadFile>;
