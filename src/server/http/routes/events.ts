// Event streams that cover more than one run: a user's events, and a thread across its runs.

import { z } from "zod";
import { type EventBus, UserEvent } from "../../../agent/core/bus.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { getRun, notFound } from "../../../engine/runs/control.ts";
import type { RunCursor } from "../../../engine/runs/follow.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../auth/guard.ts";
import { lastEventId, parseThreadCursor, threadFrames } from "../run-stream.ts";
import { EventsQuery, ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type Frame, type Frames, resetFrame } from "../sse.ts";
import type { App } from "../validation.ts";

const NAMES = UserEvent.options.map(({ shape }) => `\`${shape.event.value}\``).join(", ");
const Stream = z
  .string()
  .describe(
    `Server-Sent Events without an id and with a UserEvent as \`data\`: ${NAMES}. The last event is \`credentials_ended\` if the credentials end.`,
  );

export function eventRoutes(app: App, { stores, streams }: RouteServices): void {
  app.get(
    "/events",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Follow the changes of the user's threads, runs and backends",
        description:
          "Sends live events only, without replay. After connecting, and after `stream_reset`, read `GET /backend` and the threads.",
        tags: ["events"],
        querystring: EventsQuery.pick({ heartbeat: true, ticket: true }),
        response: { 200: { content: { "text/event-stream": { schema: Stream } } } },
      },
    },
    async (request, reply) => {
      await streams.send(reply, userFrames(stores.bus, ownerOf(request)), request.query.heartbeat);
      return undefined;
    },
  );
}

/** A viewer that falls behind gets a reset frame and then the events after it. */
function userFrames(bus: EventBus, owner: Owner): Frames {
  return async function* (signal) {
    for (let gap: Frame | undefined; ; ) {
      // Subscribes before it sends the reset, so a client that then reads the current state misses no change.
      const events = bus.subscribe(owner, signal);
      if (gap) yield [gap];
      try {
        for await (const event of events) yield [frame(event)];
        return;
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== "events_expired") throw error;
        gap = resetFrame(error);
      }
    }
  };
}

const frame = (event: UserEvent): Frame => ({ event: event.event, data: JSON.stringify(event) });

const ThreadStream = z.string().describe("Server-Sent Events, as in the stream of a run.");

export function threadEventRoutes(app: App, { stores, streams }: RouteServices): void {
  app.get(
    "/threads/:thread_id/events",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Follow a thread across its runs",
        description:
          "Starts with the run in progress or with the next one. With `Last-Event-ID` (or `after`), starts after that event. Continues with each further run, in the order in which they start, until the client disconnects or the thread is deleted.",
        tags: ["threads"],
        params: ThreadParams,
        querystring: EventsQuery,
        response: { 200: { content: { "text/event-stream": { schema: ThreadStream } } } },
      },
    },
    async (request, reply) => {
      const { thread_id: threadId } = request.params;
      const owner = ownerOf(request);
      if (!(await stores.threads.get(owner, threadId))) throw notFound("thread", threadId);
      const from = await positionAt(owner, threadId, lastEventId(request) ?? request.query.after);
      await streams.send(reply, threadFrames(stores, { owner, threadId, from }), request.query.heartbeat);
      return undefined;
    },
  );

  /** Throws `not_found` for a cursor of another thread's run. */
  async function positionAt(
    owner: Owner,
    thread_id: string,
    cursor?: string,
  ): Promise<RunCursor | undefined> {
    if (!cursor) return undefined;
    const { runId: run_id, after } = parseThreadCursor(cursor);
    return { run: await getRun({ stores }, { owner, thread_id, run_id }), after };
  }
}
