// A run as this API shows it.

import { z } from "zod";
import type { RunRecord } from "../../../core/records.ts";
import { assistantIdOf } from "./assistants.ts";
import { sentMetadata, strategyOf } from "./modes.ts";

export const STATUSES = ["pending", "running", "error", "success", "timeout", "interrupted"] as const;
export const Run = z.looseObject({ run_id: z.string(), thread_id: z.string(), status: z.enum(STATUSES) });
export type Run = z.infer<typeof Run>;
const Stream = z
  .string()
  .describe("Server-Sent Events: metadata, then what `stream_mode` names, and `error` or `end` last.");

/** The response of a route that answers with a stream. */
export const streamed = { 200: { content: { "text/event-stream": { schema: Stream } } } };

/** Where clients read the run's id off: nothing may stand behind it. */
export const contentLocation = ({ id, thread_id }: RunRecord, isStateless?: true) =>
  isStateless ? `/runs/${id}` : `/threads/${thread_id}/runs/${id}`;

export const runShape = (run: RunRecord): Run => ({
  run_id: run.id,
  thread_id: run.thread_id,
  assistant_id: assistantIdOf(run.agent),
  status: run.status === "cancelled" ? "interrupted" : run.status,
  metadata: { ...sentMetadata(run.metadata), graph_id: run.agent, assistant_id: assistantIdOf(run.agent) },
  kwargs: {},
  multitask_strategy: strategyOf(run),
  created_at: run.created_at,
  updated_at: run.ended_at ?? run.created_at,
});
