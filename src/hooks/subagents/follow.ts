// A child's run as its parent's stream tells it: what it says, under its path, between a start and an end of its own.

import type { StreamEvent } from "../../core/event.ts";
import { addUsage, NO_USAGE, type Usage } from "../../core/message.ts";
import { nested } from "../../core/nested.ts";
import type { RunRecord } from "../../core/records.ts";
import type { Stream } from "../../core/stream.ts";
import type { Subagents } from "../../core/subagents.ts";
import type { Run } from "../../core/tool.ts";
import { goesOnElsewhere } from "./leaving.ts";
import type { Ending } from "./outcome.ts";

/** How long a child may take to end that was told to, in ms: a little less than its parent's call. */
const LAST_WORDS_MS = 900;
/** How often it is looked whether the parent was asked to stop after its step, in ms. */
const LOOK_MS = 100;

interface Followed {
  readonly subagents: Subagents;
  readonly record: RunRecord;
  /** What stands in the path of its events. */
  readonly id: string;
  readonly background: boolean;
  /** Aborted when nobody waits for it any more. */
  readonly until?: AbortSignal | undefined;
}

export interface Heard {
  /** Absent when it was left before its end. */
  readonly ending?: Ending;
  readonly usage: Usage;
}

/**
 * Passes a run on from its first event to its last. When the call ends before it, a child in the foreground is cancelled,
 * one in the background left; when the parent is asked to stop after its step, the child is too.
 */
export async function* follow(followed: Followed, run: Run): Stream<Heard> {
  const { subagents, record, id } = followed;
  const leave = stopping(followed, run);
  const within = nested();
  let ending: Ending | undefined;
  let usage = NO_USAGE;
  try {
    for await (const event of subagents.events(run.owner, record, leave.signal)) {
      ending = endingIn(event);
      if (ending) break;
      if (event.event === "run_start" && !event.path) continue;
      if (event.event === "on_chat_model_end" && event.data.usage) usage = addUsage(usage, event.data.usage);
      const told = { ...event, path: [id, ...(event.path ?? [])] };
      within.see(told);
      yield told;
    }
  } finally {
    leave.end();
  }
  yield* within.ends({ code: "cancelled", message: "It was followed no further." });
  return { usage, ...(ending ? { ending } : {}) };
}

function endingIn({ event, path, data }: StreamEvent): Ending | undefined {
  if (path) return undefined;
  if (event === "done") return { status: data.status, stop_reason: data.stop_reason };
  return event === "error" ? { status: "error", error: data } : undefined;
}

/** The signal aborts when there is nothing to wait for any more. To be ended. */
function stopping({ subagents, record, background, until }: Followed, run: Run) {
  const leave = new AbortController();
  const stop = (mode: "cancel" | "interrupt") =>
    // One that cannot be told ends by itself, or when it is looked for.
    void subagents.stop(run.owner, record, mode).catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    if (background || goesOnElsewhere(run.signal)) return leave.abort();
    stop("cancel");
    timer = setTimeout(() => leave.abort(), LAST_WORDS_MS);
  };
  const onEnough = () => leave.abort();
  const looking = setInterval(() => {
    if (!run.interruptRequested()) return;
    clearInterval(looking);
    if (background) leave.abort();
    else stop("interrupt");
  }, LOOK_MS);
  run.signal.addEventListener("abort", onAbort);
  until?.addEventListener("abort", onEnough);
  if (run.signal.aborted) onAbort();
  if (until?.aborted) onEnough();
  return {
    signal: leave.signal,
    end() {
      clearInterval(looking);
      clearTimeout(timer);
      run.signal.removeEventListener("abort", onAbort);
      until?.removeEventListener("abort", onEnough);
    },
  };
}
