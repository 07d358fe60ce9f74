// Follow a thread: all its runs, one after the other, with one cursor.

import { z } from "zod";
import type { Owner } from "../../core/ids.ts";
import type { Place } from "../../runs/following.ts";
import { notFound } from "../../runs/manager.ts";
import { ownerOf } from "../auth/guard.ts";
import { lastEventId, placeOf } from "../cursor.ts";
import { threadFrames } from "../run-frames.ts";
import { EventsQuery, ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const Stream = z.string().describe("Server-Sent Events, as those of each run.");

export function threadEventRoutes(app: App, { stores, runs, streams }: RouteServices): void {
  app.get(
    "/threads/:thread_id/events",
    {
      sse: "manual",
      schema: {
        summary: "Follow a thread across its runs",
        description:
          "Begins with the run that runs now, or with the next one; with `Last-Event-ID` (or `after`) with what came after that event. Goes on with every further run, in the order in which they begin, until the viewer leaves or the thread is deleted.",
        tags: ["threads"],
        params: ThreadParams,
        querystring: EventsQuery,
        response: { 200: { content: { "text/event-stream": { schema: Stream } } } },
      },
    },
    async (request, reply) => {
      const { thread_id: threadId } = request.params;
      const owner = ownerOf(request);
      if (!(await stores.threads.get(owner, threadId))) throw notFound("thread", threadId);
      const from = await placeAt(owner, threadId, lastEventId(request) ?? request.query.after);
      const thread = { owner, threadId, ...(from ? { from } : {}) };
      await streams.send(reply, threadFrames(runs, thread), request.query.heartbeat);
      return undefined;
    },
  );

  /** Throws `not_found` for a cursor of another thread's run. */
  async function placeAt(
    owner: Owner,
    threadId: string,
    cursor: string | undefined,
  ): Promise<Place | undefined> {
    if (!cursor) return undefined;
    const { runId, after } = placeOf(cursor);
    return { run: await runs.get(owner, threadId, runId), after };
  }
}
