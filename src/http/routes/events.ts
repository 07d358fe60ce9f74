// The user's own bus: what happens outside of any one run.

import { z } from "zod";
import { type EventBus, UserEvent } from "../../core/bus.ts";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import { ownerOf } from "../auth/guard.ts";
import { EventsQuery } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type Frame, type Frames, resetFrame } from "../sse.ts";
import type { App } from "../validation.ts";

const NAMES = UserEvent.options.map(({ shape }) => `\`${shape.event.value}\``).join(", ");
const Stream = z.string().describe(`Server-Sent Events without an id: ${NAMES}; as \`data\` a UserEvent.`);

export function eventRoutes(app: App, { stores, streams }: RouteServices): void {
  app.get(
    "/events",
    {
      sse: "manual",
      schema: {
        summary: "Follow what happens to the user's backends and runs",
        description:
          "Live only: nothing is replayed. After connecting, and after `stream_reset`, read `GET /backend` and the threads.",
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

/** A viewer who fell behind is told so, and hears what comes after that. */
function userFrames(bus: EventBus, owner: Owner): Frames {
  return async function* (signal) {
    for (let gap: Frame | undefined; ; ) {
      // It listens before the gap is told: whoever then reads how things are misses no change of them.
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
