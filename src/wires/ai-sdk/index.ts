// The AI SDK's UI message stream: the protocol of `useChat`. docs/reference/wires/ai-sdk.md shows how to connect a page.

import type { FastifyReply } from "fastify";
import { z } from "zod";
import { keyOf, notFound } from "../../engine/runs/control.ts";
import { openOn } from "../../engine/runs/start.ts";
import { turnInProgress, turnStart } from "../../engine/runs/turn.ts";
import { docsPage } from "../../lib/docs.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { callerOf } from "../../server/http/caller.ts";
import { inSlices, jsonOf, listOf, payloadOf } from "../../server/http/long-responses.ts";
import { cancelTurnAt } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { type App, fittingJson } from "../../server/http/validation.ts";
import { threadIdOf } from "../messages.ts";
import { answerRefusals } from "../refusals.ts";
import { streamRun } from "../reply.ts";
import { ERRORS } from "./errors.ts";
import { justEnded, newestUserMessage, turnFrames } from "./frames.ts";
import { answerIdOf, askingInWords, historyOf } from "./history.ts";
import { ChatBody, UIMessage } from "./input.ts";
import { prepare } from "./prepare.ts";
import type { ProjectOptions } from "./table.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const ChatParams = AgentParams.extend({ id: z.string().min(1).max(1024) });
const StreamQuery = z.looseObject({
  v: z.enum(["5", "6", "7"]).default("7"),
  on_disconnect: z.enum(["continue", "cancel"]).default("continue"),
});
type StreamQuery = z.infer<typeof StreamQuery>;

const Chunks = z
  .string()
  .describe("Server-Sent Events with a UI message chunk as `data`, ending with `[DONE]`.");

export function aiSdkRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, unreadResponses } = services;
  const { threads } = stores;
  const toJson = fittingJson(app, UIMessage, { method: "GET", url: "/:agent/chat/:id/messages" });
  const tags = ["ai-sdk"];
  answerRefusals(app, ERRORS);

  app.post(
    "/:agent/chat",
    {
      sse: "manual",
      schema: {
        summary: "Send the newest message of a chat, or the answers in it, and follow the turn",
        description: `The protocol of \`useChat\` in the AI SDK. See ${docsPage("reference/wires/ai-sdk.md")}.`,
        tags,
        params: AgentParams,
        querystring: StreamQuery,
        body: ChatBody,
        response: { 200: { content: { "text/event-stream": { schema: Chunks } } } },
      },
    },
    async (request, reply) => {
      const { body, query } = request;
      const owner = ownerOf(request);
      const version = versionOf(query);
      const place = {
        thread_id: threadIdOf(body.id),
        agent: request.params.agent,
        asksInWords: version === 5,
      };
      const { start, at, ...options } = await prepare(services, callerOf(request), place, body);
      head(reply);
      await streamRun(services, reply, {
        owner,
        start,
        framesOf: (run) => turnFrames(stores, owner, { from: run, at }, { ...options, version }),
        cancelsOnLeave: query.on_disconnect === "cancel",
      });
      return undefined;
    },
  );

  app.get(
    "/:agent/chat/:id/stream",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Follow the turn in progress from its beginning",
        description: "Also follows a turn that has just ended. Otherwise, returns 204.",
        tags,
        params: ChatParams,
        querystring: StreamQuery,
        response: { 200: { content: { "text/event-stream": { schema: Chunks } } }, 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const threadId = threadIdOf(request.params.id);
      const version = versionOf(request.query);
      const run =
        (await turnInProgress({ stores }, owner, threadId)) ??
        (await justEnded(stores, owner, threadId, version));
      if (!run) return reply.code(204).send(null);
      const from = await turnStart({ stores }, owner, run);
      const messageId = answerIdOf(newestUserMessage(await threads.messages(owner, threadId)));
      const options = { messageId, version };
      head(reply);
      await streams.send(reply, turnFrames(stores, owner, { from, at: run }, options), "comment", "cut");
      return undefined;
    },
  );

  app.post(
    "/:agent/chat/:id/stop",
    {
      schema: {
        summary: "Cancel the turn in progress",
        tags,
        params: ChatParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const run = await turnInProgress({ stores }, owner, threadIdOf(request.params.id));
      if (run) await cancelTurnAt(runs, keyOf(owner, run));
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/:agent/chat/:id/messages",
    {
      schema: {
        summary: "Get the chat as UI messages",
        tags,
        params: ChatParams,
        querystring: StreamQuery,
        response: { 200: z.array(UIMessage) },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const id = threadIdOf(request.params.id);
      const found = await threads.measured(owner, id);
      if (!found) throw notFound("thread", request.params.id);
      const [messages, state, open] = await Promise.all([
        threads.messages(owner, id),
        threads.state(owner, id),
        openOn(threads, owner, id),
      ]);
      const history = historyOf({ messages, state, open });
      const shown = versionOf(request.query) === 5 ? askingInWords(history, open) : history;
      const answer = listOf(inSlices(owner.tenant, shown, toJson));
      return jsonOf(reply, await payloadOf(answer, () => unreadResponses.open(reply), found.bytes));
    },
  );
}

const versionOf = ({ v }: StreamQuery) => Number(v) as ProjectOptions["version"];

const head = (reply: FastifyReply) =>
  reply.header("x-vercel-ai-ui-message-stream", "v1").header("x-accel-buffering", "no");
