// LangGraph's streaming protocol, "v2": commands, and streams that stay open across a thread's runs. `@langchain/react`
// and `client.threads.stream` use it. docs/reference/wires/langgraph.md shows how to connect a page.

import { z } from "zod";
import { ownerOf } from "../../../server/auth/guard.ts";
import { callerOf } from "../../../server/http/caller.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { threadIdOf } from "../../messages.ts";
import { carryOut, ProtocolCommand } from "./commands.ts";
import { StreamBody } from "./filter.ts";
import { lastNumber, threadEvents } from "./stream.ts";

const ThreadParams = z.object({ thread_id: z.string().min(1).max(1024) });
const CommandReply = z.looseObject({
  type: z.enum(["success", "error"]),
  id: z.int(),
  meta: z.looseObject({ applied_through_seq: z.int(), thread_id: z.string() }),
});
const Events = z.string().describe("Server-Sent Events with an event of the protocol as `data`.");

export function protocolRoutes(app: App, services: RouteServices): void {
  const { stores, streams } = services;
  const tags = ["langgraph"];

  app.post(
    "/threads/:thread_id/commands",
    {
      schema: {
        summary: "Execute a command on a thread",
        description: "The protocol of `@langchain/react`. A refused command returns 200 with `error`.",
        tags,
        params: ThreadParams,
        body: ProtocolCommand,
        response: { 200: CommandReply },
      },
    },
    async (request) => {
      const { id } = request.body;
      const owner = ownerOf(request);
      const threadId = threadIdOf(request.params.thread_id);
      const applied_through_seq = await lastNumber(stores, owner, threadId);
      const caller = callerOf(request);
      const answer = await carryOut({ services, caller, threadId }, request.body);
      return { ...answer, id, meta: { applied_through_seq, thread_id: request.params.thread_id } };
    },
  );

  app.post(
    "/threads/:thread_id/stream/events",
    {
      sse: "manual",
      schema: {
        summary: "Follow a thread across its runs",
        description: "Sends nothing until the thread exists.",
        tags,
        params: ThreadParams,
        body: StreamBody,
        response: { 200: { content: { "text/event-stream": { schema: Events } } } },
      },
    },
    async (request, reply) => {
      const threadId = threadIdOf(request.params.thread_id);
      const frames = threadEvents(stores, { owner: ownerOf(request), threadId, filter: request.body });
      await streams.send(reply, frames, "comment", "cut");
      return undefined;
    },
  );
}
