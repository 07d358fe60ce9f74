// Request options that a run keeps in its metadata: the stream modes, for clients that join it later.

import type { RunRecord } from "../../agent/core/records.ts";
import type { RunBody } from "./input.ts";

type Metadata = RunRecord["metadata"];

/** The parts of a run that a reader receives. */
export interface StreamModes {
  readonly modes: ReadonlySet<string>;
  /** True if the reader receives the events of subagents. */
  readonly subgraphs: boolean;
}

const MODES = "langgraph_stream_mode";
const SUBGRAPHS = "langgraph_stream_subgraphs";
const STRATEGY = "langgraph_multitask_strategy";
const OURS: ReadonlySet<string> = new Set([MODES, SUBGRAPHS, STRATEGY]);

/** The stream modes that this wire supports. Other modes in a request are ignored. */
const SHOWN = ["values", "messages-tuple", "messages", "updates", "tools", "custom"] as const;

const listOf = (modes: string | readonly string[]) => (typeof modes === "string" ? [modes] : modes);

export function runMetadata(body: RunBody): Metadata {
  const { stream_mode, stream_subgraphs, multitask_strategy, metadata } = body;
  const wanted = new Set(listOf(stream_mode ?? "values"));
  return {
    ...scalarsIn(metadata ?? {}, MAX_KEYS - OURS.size),
    [MODES]: SHOWN.filter((mode) => wanted.has(mode)).join(","),
    ...(stream_subgraphs ? { [SUBGRAPHS]: true } : {}),
    ...(multitask_strategy ? { [STRATEGY]: multitask_strategy } : {}),
  };
}

/** The maximum number of keys in the metadata of a thread or run. */
export const MAX_KEYS = 32;

/** Returns the entries that metadata can contain, at most `most`. */
export function scalarsIn(sent: Readonly<Record<string, unknown>>, most = MAX_KEYS): Metadata {
  const kept = Object.entries(sent).filter((entry): entry is [string, string | number | boolean] => {
    const [key, value] = entry;
    if (key.length > 64 || OURS.has(key)) return false;
    return typeof value === "string" ? value.length <= 512 : ["number", "boolean"].includes(typeof value);
  });
  return Object.fromEntries(kept.slice(0, most));
}

/** Returns the modes with which a run was started, or `values` if another API started it. */
export function modesOf({ metadata }: RunRecord): StreamModes {
  const kept = metadata[MODES];
  const modes = typeof kept === "string" ? kept.split(",") : ["values"];
  return { modes: new Set(modes), subgraphs: metadata[SUBGRAPHS] === true };
}

/** Returns the modes that a reader requests or, if there are none, the modes of the run. */
export function modesIn(
  query: { stream_mode?: string | readonly string[] | undefined; stream_subgraphs?: boolean | undefined },
  run: RunRecord,
): StreamModes {
  const kept = modesOf(run);
  return {
    modes: query.stream_mode === undefined ? kept.modes : new Set(listOf(query.stream_mode)),
    subgraphs: query.stream_subgraphs ?? kept.subgraphs,
  };
}

export const strategyOf = ({ metadata }: RunRecord) => metadata[STRATEGY] ?? "enqueue";

/** Returns the metadata without this wire's entries. */
export const sentMetadata = (metadata: Metadata): Metadata =>
  Object.fromEntries(Object.entries(metadata).filter(([key]) => !OURS.has(key)));

/**
 * Returns the path, below the base path, at which a disconnected reader reconnects. It contains the modes, because the
 * reader does not send them again.
 */
export function streamPath({ id, thread_id }: RunRecord, { modes, subgraphs }: StreamModes): string {
  const query = new URLSearchParams();
  for (const mode of modes) query.append("stream_mode", mode);
  if (subgraphs) query.set("stream_subgraphs", "true");
  return `/threads/${thread_id}/runs/${id}/stream?${query}`;
}
