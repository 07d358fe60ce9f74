// Answers with a run's frames.

import type { FastifyReply } from "fastify";
import type { Owner } from "../../core/ids.ts";
import type { RunRecord } from "../../core/records.ts";
import { keyOf } from "../../runs/control.ts";
import { cancelIfActive } from "../run-stream.ts";
import type { RouteServices } from "../services.ts";
import type { Frames } from "../sse.ts";

export interface StreamedRun {
  readonly owner: Owner;
  /** Starts the run, or finds it. Gets the id of the stream's place: no run is started for a client that is refused. */
  readonly start: (stream: string) => Promise<RunRecord>;
  readonly framesOf: (run: RunRecord) => Frames;
  /** Cancels the run when the client disconnects before its end. */
  readonly cancelsOnLeave: boolean;
}

/** Resolves with the run once its stream has ended or the client has left. A stream that ends early is cut. */
export async function streamRun(
  { runs, streams }: Pick<RouteServices, "runs" | "streams">,
  reply: FastifyReply,
  { owner, start, framesOf, cancelsOnLeave }: StreamedRun,
): Promise<RunRecord> {
  const place = streams.take(reply);
  const run = await start(place.id);
  place.keep();
  const end = await place.send(framesOf(run), "comment", "cut");
  if (end === "left" && cancelsOnLeave) await cancelIfActive(runs, keyOf(owner, run));
  return run;
}
