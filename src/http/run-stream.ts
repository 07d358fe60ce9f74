// The answer to a request that starts a run, or rejoins one: its stream, its end, or word that it was accepted.

import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import { isSettled, type RunRecord } from "../core/records.ts";
import type { Cursor, LogEntry } from "../core/stores.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { Following } from "../runs/follow.ts";
import type { RunManager } from "../runs/manager.ts";
import { gone } from "./client-disconnect.ts";
import type { RouteServices } from "./services.ts";
import { type Frame, type Frames, resetFrame } from "./sse.ts";

export interface Starting {
  readonly owner: Owner;
  readonly background: boolean;
  /** What becomes of the run when the client leaves before its end. */
  readonly onDisconnect: "continue" | "cancel";
  /** Not called when there is no room for the answer. */
  run(): Promise<RunRecord>;
}

export async function replyWithRun(
  { runs, streams }: Pick<RouteServices, "runs" | "streams">,
  starting: Starting,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const { owner, background } = starting;
  const isWatched = !background && !wantsJson(request);
  if (isWatched) await streams.assertRoom(reply);
  const run = await starting.run();
  reply.header("location", `/threads/${run.thread_id}/runs/${run.id}/events`);
  if (background) return reply.code(202).send(run);

  const leaves = starting.onDisconnect === "cancel" ? cancelQuietly : async () => {};
  if (!isWatched) return finishedRun(runs, { owner, run }, { reply, closing: streams.closing }, leaves);
  const after = await resumeAt(runs, { owner, run }, lastEventId(request));
  if (after === undefined) return reply.code(204).send(null);
  const frames = runFrames(runs, { owner, run, after });
  if ((await streams.send(reply, frames, "comment")) === "left") await leaves();
  return undefined;

  async function cancelQuietly(): Promise<void> {
    await runs.stop(owner, run.thread_id, run.id, "cancel").catch((error: unknown) => {
      if (!hasCode(error, "run_not_active")) throw error;
    });
  }
}

const wantsJson = ({ headers }: FastifyRequest) =>
  (headers.accept?.includes("application/json") ?? false) && !headers.accept?.includes("text/event-stream");

// Where a viewer stands in a run: the id of the last event it got, `<run>:<epoch>-<seq>`.
const CURSOR = /^(?:(?<run>[A-Za-z0-9_-]{1,128}):(?<epoch>\d{1,9})-)?(?<seq>\d{1,9})$/;

/** The cursor with which a client comes back. */
export function lastEventId({ headers }: FastifyRequest): string | undefined {
  const header = headers["last-event-id"];
  return typeof header === "string" ? header : undefined;
}

/** The run and the event that the cursor of somebody names who follows a thread. Throws `invalid_request`. */
export function placeOf(cursor: string): { runId: string; after: Cursor } {
  const { run, seq, epoch } = CURSOR.exec(cursor)?.groups ?? {};
  if (run === undefined) throw notACursor();
  return { runId: run, after: { seq: Number(seq), epoch: Number(epoch) } };
}

/**
 * Where to continue; undefined when the run has ended and was read to its end. A viewer without a cursor gets what is still
 * kept. Throws `invalid_request` for a cursor of another run, and `events_expired` when what comes after it is no longer
 * kept, or the log has lost what the viewer has seen.
 */
export async function resumeAt(
  runs: RunManager,
  { owner, run }: { owner: Owner; run: RunRecord },
  cursor: string | undefined,
): Promise<Cursor | undefined> {
  const { first, last } = await runs.bounds(owner, run);
  const hasEnded = isSettled(run.status);
  if (hasEnded && last === 0) throw expired();
  if (cursor === undefined || cursor === "") return { seq: 0 };
  const parts = CURSOR.exec(cursor)?.groups;
  if (!parts || (parts.run !== undefined && parts.run !== run.id)) throw notACursor();
  const { epoch } = parts;
  const after = {
    seq: Number(parts.seq),
    ...omitUndefined({ epoch: epoch === undefined ? undefined : Number(epoch) }),
  };
  if (after.seq > last || after.seq < first - 1) throw expired();
  if ((await runs.seen(owner, run, after)) !== after.seq) throw expired();
  return hasEnded && after.seq === last ? undefined : after;
}

const notACursor = () =>
  new AppError(
    "invalid_request",
    "This is not a cursor of this run. Use the id of the last event you got of it.",
  );

export const expired = () =>
  new AppError("events_expired", "The events after this cursor are not kept. Read the thread's messages.");

// A run as a viewer gets it: its entries as frames. A viewer is a cursor, not a queue: it reads on from the log.

interface View {
  readonly owner: Owner;
  readonly run: RunRecord;
  /** The event that was seen last. */
  readonly after: Cursor;
}

/** The entries after `after`. Where entries were dropped or lost, a reset frame comes first, then what is still there. */
export function runFrames(runs: RunManager, { owner, run, after }: View): Frames {
  return async function* (signal) {
    for (let cursor = after; ; ) {
      try {
        for await (const batch of runs.events(owner, run, cursor, signal)) {
          yield framesOf(run.id, batch);
          cursor = batch.at(-1) ?? cursor;
        }
        return;
      } catch (error) {
        if (!hasCode(error, "events_expired")) throw error;
        yield [resetFrame(error)];
        const { last } = await runs.bounds(owner, run);
        if (last === 0) return;
        cursor = { seq: await runs.seen(owner, run, cursor) };
      }
    }
  };
}

/** The same of a thread, run after run. */
export function threadFrames(runs: RunManager, thread: Following): Frames {
  return async function* (signal) {
    for await (const { run, after } of runs.follow(thread, signal))
      yield* runFrames(runs, { owner: thread.owner, run, after })(signal);
  };
}

const framesOf = (runId: string, entries: readonly LogEntry[]) => entries.map((entry) => frame(runId, entry));

/** The id is the cursor a viewer comes back with: opaque to it, `<run>:<epoch>-<seq>` to us. */
const frame = (runId: string, { epoch, seq, event, json }: LogEntry): Frame => ({
  id: `${runId}:${epoch}-${seq}`,
  event,
  data: json,
});

// The answer to a client that waits for a run instead of following it.

/**
 * Resolves with the ended run and all it added to the thread. When the client leaves first, `onLeave` is
 * called and the run is returned as it is.
 */
export async function finishedRun(
  runs: RunManager,
  { owner, run }: { owner: Owner; run: RunRecord },
  { reply, closing }: { reply: FastifyReply; closing: AbortSignal },
  onLeave: () => Promise<void>,
): Promise<RunRecord & { messages: Message[] }> {
  const left = gone(reply);
  const messages: Message[] = [];
  for await (const batch of runs.events(owner, run, 0, AbortSignal.any([left, closing]))) {
    for (const { event, json } of batch) if (event === "on_message") messages.push(...messageIn(json));
  }
  if (left.aborted) await onLeave();
  else if (closing.aborted)
    throw new AppError("shutting_down", "The server is shutting down. The run is kept.");
  return { ...(await runs.get(owner, run.thread_id, run.id)), messages };
}

/** The log holds events as they were checked when they were made; a subagent's belong to its own thread. */
function messageIn(json: string): Message[] {
  const event = JSON.parse(json) as Extract<StreamEvent, { event: "on_message" }>;
  return event.path ? [] : [event.data.message];
}
