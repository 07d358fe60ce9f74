// AG-UI: the protocol of its HttpAgent and the routes of CopilotKit's runtime. docs/reference/wires/ag-ui.md shows how
// to connect one.

import { z } from "zod";
import { keyOf } from "../../engine/runs/control.ts";
import { docsPage } from "../../lib/docs.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { callerOf } from "../../server/http/caller.ts";
import { cancelIfActive } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { EarlyEnd, Frames } from "../../server/http/sse.ts";
import type { App } from "../../server/http/validation.ts";
import { threadIdOf } from "../messages.ts";
import { answerRefusals } from "../refusals.ts";
import { streamRun } from "../reply.ts";
import { ERRORS } from "./errors.ts";
import { activeRun, runFrames, threadFrames } from "./frames.ts";
import { cancelsOnLeave, isCurrent, RunAgentInput } from "./input.ts";
import { Version } from "./older-clients.ts";
import { prepare } from "./prepare.ts";
import { frameOf, type Reader } from "./table.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const Versioned = z.looseObject({ v: Version });
const StopParams = AgentParams.extend({ thread_id: z.string().min(1).max(1024) });

const Events = z.string().describe("Server-Sent Events with an AG-UI event as `data`.");
const Info = z.looseObject({ version: z.string(), agents: z.record(z.string(), z.unknown()) });

/** The self-description of a CopilotKit runtime of this version. */
const RUNTIME = {
  version: "1.75.0",
  audioFileTranscriptionEnabled: false,
  mode: "sse",
  threadEndpoints: { list: false, inspect: false, mutations: false, realtimeMetadata: false },
  suggestions: false,
  a2uiEnabled: false,
  openGenerativeUIEnabled: false,
  telemetryDisabled: true,
};

export function aguiRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, agents } = services;
  const tags = ["ag-ui"];
  const stream = { 200: { content: { "text/event-stream": { schema: Events } } } };
  answerRefusals(app, ERRORS);

  app.get(
    "/info",
    {
      schema: {
        summary: "List the agents as a CopilotKit runtime does",
        tags,
        response: { 200: Info },
      },
    },
    async () => ({
      ...RUNTIME,
      agents: Object.fromEntries(
        agents
          .list()
          .map(({ name, description = "" }) => [name, { name, description, className: "HttpAgent" }]),
      ),
    }),
  );

  app.post(
    "/agent/:agent/run",
    {
      sse: "manual",
      schema: {
        summary: "Send the newest message of a thread, or answers, and follow the run",
        description: `The protocol of AG-UI's HttpAgent and of CopilotKit. See ${docsPage("reference/wires/ag-ui.md")}.`,
        tags,
        params: AgentParams,
        querystring: Versioned,
        body: RunAgentInput,
        response: stream,
      },
    },
    async (request, reply) => {
      const { body } = request;
      const owner = ownerOf(request);
      const thread_id = threadIdOf(body.threadId);
      const agent = agentNamed(request.params.agent);
      const doesCancel = cancelsOnLeave(body);
      const place = { thread_id, agent, version: request.query.v };
      const { start, before } = await prepare(services, callerOf(request), place, body);
      const options = { ...readerOf(body, request.query.v), ...before };
      const end = endOf();
      await streamRun(services, reply, {
        owner,
        start,
        framesOf: (run) => end.watched(runFrames(stores, owner, run, options)),
        cancelsOnLeave: doesCancel,
        earlyEnd: end.early,
      });
      return undefined;
    },
  );

  app.post(
    "/agent/:agent/connect",
    {
      sse: "manual",
      schema: {
        summary: "Get a thread's messages, then follow its run in progress",
        description:
          "CopilotKit calls this when a page opens a thread. For an unknown thread, the stream is empty.",
        tags,
        params: AgentParams,
        querystring: Versioned,
        body: RunAgentInput,
        response: stream,
      },
    },
    async (request, reply) => {
      const { body } = request;
      agentNamed(request.params.agent);
      const end = endOf();
      const thread_id = threadIdOf(body.threadId);
      const frames = await threadFrames(stores, ownerOf(request), thread_id, readerOf(body, request.query.v));
      await streams.send(reply, end.watched(frames), "comment", end.early);
      return undefined;
    },
  );

  app.post(
    "/agent/:agent/stop/:thread_id",
    {
      schema: {
        summary: "Cancel the run in progress",
        tags,
        params: StopParams,
        response: { 200: z.object({ stopped: z.boolean() }) },
      },
    },
    async (request) => {
      agentNamed(request.params.agent);
      const owner = ownerOf(request);
      const run = await activeRun(stores, owner, threadIdOf(request.params.thread_id));
      if (run) await cancelIfActive(runs, keyOf(owner, run));
      return { stopped: run !== undefined };
    },
  );

  function agentNamed(name: string): string {
    return agents.seenWith(name, undefined).agent.name;
  }
}

const readerOf = (body: RunAgentInput, version: number | undefined): Reader => ({
  threadId: body.threadId,
  runId: body.runId,
  isCurrent: version === undefined && isCurrent(body),
  version,
});

const END = /^\{"type":"RUN_(?:FINISHED|ERROR)"/;

/**
 * Ends a stream with an error of the protocol if the stream ends before the run does. AG-UI clients treat a clean end
 * as success, and one of them exits when the connection is cut.
 */
function endOf() {
  let isOver = false;
  const early: EarlyEnd = ({ message, code }) =>
    isOver ? [] : [frameOf({ type: "RUN_ERROR", message, code })];
  const watched = (frames: Frames): Frames =>
    async function* (signal) {
      for await (const batch of frames(signal)) {
        isOver ||= batch.some(({ data }) => typeof data === "string" && END.test(data));
        yield batch;
      }
    };
  return { early, watched };
}
