// The answer to a request that starts a run, or rejoins one: its stream, its end, or word that it was accepted.

import type { FastifyReply, FastifyRequest } from "fastify";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { RunRecord } from "../core/records.ts";
import { lastEventId, resumeAt } from "./cursor.ts";
import { finishedRun } from "./finished-run.ts";
import { runFrames } from "./run-frames.ts";
import type { RouteServices } from "./services.ts";

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
