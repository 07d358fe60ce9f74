// Responds to a request with the frames of a run, or with a result based on them.

import type { FastifyReply } from "fastify";
import { AppError } from "../agent/core/errors.ts";
import type { RunRecord } from "../agent/core/records.ts";
import { keyOf } from "../engine/runs/control.ts";
import { turnNow } from "../engine/runs/turn.ts";
import type { Owner } from "../protocol/ids.ts";
import { clientDisconnect } from "../server/http/client-disconnect.ts";
import { bodyIsDone } from "../server/http/incoming-bodies.ts";
import { cancelIfActive } from "../server/http/run-stream.ts";
import type { RouteServices } from "../server/http/services.ts";
import { credentialsEnd, type EarlyEnd, type Frames, type Heartbeat } from "../server/http/sse.ts";

export interface StreamedRun {
  readonly owner: Owner;
  /**
   * Starts or finds the run. `stream` is the id of the stream's place. The place is reserved first, so no run starts
   * for a client that is refused.
   */
  readonly start: (stream: string) => Promise<RunRecord>;
  readonly framesOf: (run: RunRecord) => Frames;
  /** True if the run is cancelled when the client disconnects before the run ends. */
  readonly cancelsOnLeave: boolean;
  /** Default: a stream that ends early is cut. */
  readonly earlyEnd?: EarlyEnd;
  /** Default: a comment. */
  readonly heartbeat?: Heartbeat;
}

/** Resolves with the run once its stream has ended or the client has disconnected. */
export async function streamRun(
  { runs, streams }: Pick<RouteServices, "runs" | "streams">,
  reply: FastifyReply,
  { owner, start, framesOf, cancelsOnLeave, earlyEnd = "cut", heartbeat = "comment" }: StreamedRun,
): Promise<RunRecord> {
  const place = streams.take(reply);
  const run = await start(place.id);
  place.keep();
  const end = await place.send(framesOf(run), heartbeat, earlyEnd);
  if (end === "left" && cancelsOnLeave) await cancelNow(runs, owner, run);
  return run;
}

/** The current run of the turn may be a later one. */
async function cancelNow(runs: RouteServices["runs"], owner: Owner, run: RunRecord): Promise<void> {
  await cancelIfActive(runs, keyOf(owner, await turnNow(runs, owner, run)));
}

export interface WholeRun extends Omit<StreamedRun, "start" | "earlyEnd" | "heartbeat"> {
  readonly start: () => Promise<RunRecord>;
}

/**
 * Reads all frames of a run, for a response in one piece, and resolves with the run. Throws `shutting_down`,
 * `credentials_expired`, `credentials_revoked`.
 */
export async function readRun(
  { runs, streams, access }: Pick<RouteServices, "runs" | "streams" | "access">,
  reply: FastifyReply,
  { owner, start, framesOf, cancelsOnLeave }: WholeRun,
): Promise<RunRecord> {
  const run = await start();
  bodyIsDone(reply.request);
  const left = clientDisconnect(reply);
  const over = credentialsEnd(access.credentials, reply);
  for await (const _ of framesOf(run)(AbortSignal.any([left, streams.closing, over])));
  if ((left.aborted || over.aborted) && cancelsOnLeave) await cancelNow(runs, owner, run);
  if (over.aborted) throw over.reason;
  if (!left.aborted && streams.closing.aborted)
    throw new AppError("shutting_down", "The server is shutting down. Try another replica.");
  return run;
}
