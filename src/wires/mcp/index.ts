// MCP over streamable HTTP: agents as tools for other programs. docs/reference/wires/mcp.md shows how to connect one.
// Each exchange has few messages and sessions are not stored, so any process can answer any message.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { getRun } from "../../engine/runs/control.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { docsPage } from "../../lib/docs.ts";
import { ownerOf, principalOf } from "../../server/auth/guard.ts";
import { requireScope } from "../../server/auth/scopes.ts";
import { lastEventId } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { Frames } from "../../server/http/sse.ts";
import type { App } from "../../server/http/validation.ts";
import {
  isBeforeCalls,
  RPC,
  RpcError,
  RpcId,
  readParams,
  readRequest,
  rpcFailure,
  rpcResult,
  unknownMethod,
} from "../json-rpc.ts";
import { call, cancel, type Exchange, framesOf, projected, takeForm, whole } from "./calls.ts";
import { sendMcpError } from "./errors.ts";
import { toolList } from "./input.ts";
import {
  BATCHES,
  type ClientOfCall,
  clientOf,
  InitializeParams,
  newSession,
  readCursor,
  sessionOf,
  VERSIONS,
  versionFor,
} from "./protocol.ts";

const Message = z.looseObject({
  jsonrpc: z.string().optional().describe("`2.0`."),
  id: z.unknown().optional().describe("Id of a call: a string or an integer. Notifications have none."),
  method: z.string().optional(),
  params: z
    .looseObject({
      name: z.unknown().optional().describe("Name of a tool."),
      arguments: z.looseObject({ thread_id: z.unknown().optional() }).nullish(),
    })
    .optional(),
});
/** Only revision 2025-03-26 has batches. */
const Batch = boundedList(Message, 50).min(1);
const Body = z.union([Message, Batch]);
const RpcAnswer = z.looseObject({ jsonrpc: z.literal("2.0") });
const Messages = z
  .string()
  .describe("Server-Sent Events with a JSON-RPC message as `data`, ending with the result of the call.");
const SessionHeaders = z.looseObject({
  "mcp-session-id": z.string().max(256).optional(),
  "mcp-protocol-version": z.string().max(64).optional(),
});

const METHODS = ["initialize", "server/discover", "ping", "tools/list", "tools/call"] as const;

const INSTRUCTIONS =
  "Agents that work by themselves. Call `list_agents` for their descriptions, and `run_agent` to give one a task.";

export function mcpRoutes(app: App, services: RouteServices): void {
  const tags = ["mcp"];
  app.setErrorHandler<Error>(sendMcpError);

  app.post(
    "",
    {
      sse: "manual",
      schema: {
        summary: "Send an MCP message",
        description: `Accepts one JSON-RPC message of the Model Context Protocol. Calls to tools that run an agent return a stream. See ${docsPage("reference/wires/mcp.md")}.`,
        tags,
        headers: SessionHeaders,
        body: Body,
        response: {
          200: {
            content: {
              "text/event-stream": { schema: Messages },
              "application/json": { schema: z.union([RpcAnswer, z.array(RpcAnswer)]) },
            },
          },
          202: z.null(),
        },
      },
    },
    (request, reply) => answerMessages(services, request.body, { request, reply }),
  );

  app.get(
    "",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Reconnect to the stream of a call",
        description:
          "Continues after `Last-Event-ID`. Without `Last-Event-ID`, returns 405, because the server sends nothing between calls.",
        tags,
        headers: SessionHeaders,
        response: { 200: { content: { "text/event-stream": { schema: Messages } } }, 405: RpcAnswer },
      },
    },
    (request, reply) => comeBack(services, { request, reply }),
  );

  app.delete(
    "",
    {
      schema: {
        summary: "End a session",
        description: "Runs continue. The server stores no sessions.",
        tags,
        headers: SessionHeaders,
        response: { 204: z.null() },
      },
    },
    async (_request, reply) => reply.code(204).send(null),
  );
}

async function answerMessages(services: RouteServices, body: z.infer<typeof Body>, exchange: Exchange) {
  if (Array.isArray(body)) return answerBatch(services, body, exchange);
  const call = await taken(services, body, exchange.request);
  return call ? answer(services, call, exchange) : exchange.reply.code(202).send(null);
}

/** Sends the frames of a call that the client does not have yet. */
async function comeBack(services: RouteServices, { request, reply }: Exchange) {
  const eventId = lastEventId(request);
  if (eventId === undefined) {
    const message = "There is no stream between calls. To reconnect to a call, send Last-Event-ID.";
    const error = { code: RPC.invalidRequest, message };
    return reply.code(405).header("allow", "POST, DELETE").send({ jsonrpc: "2.0", id: null, error });
  }
  const { call, seen } = readCursor(eventId);
  const owner = ownerOf(request);
  const run = await getRun(services, { owner, thread_id: call.thread_id, run_id: call.run_id });
  const { asking, shows, namesType } = clientOf(request, undefined);
  const projection = projected({ ...call, asking, shows, namesType, comesBack: true });
  const frames = after(seen, framesOf(services, owner, run, projection));
  await services.streams.send(reply, frames, projection.beat ?? "comment", "cut");
  return undefined;
}

interface Call {
  readonly id: RpcId;
  readonly method: string;
  readonly params: unknown;
}

/** Handles messages that need no response, and returns undefined for them. */
async function taken(
  services: RouteServices,
  body: z.infer<typeof Message>,
  request: Exchange["request"],
): Promise<Call | undefined> {
  if (body.method === undefined && (body.result !== undefined || body.error !== undefined)) {
    requireScope(principalOf(request), "run");
    await takeForm(services, body, request);
    return undefined;
  }
  const { id, method, params } = readRequest(body);
  if (id !== undefined) return { id, method, params };
  if (method === "notifications/cancelled") await cancelCall(services, params, request);
  return undefined;
}

/** Answers one call after the other, so a batch starts no more runs at once than a single call. */
async function answerBatch(
  services: RouteServices,
  batch: readonly z.infer<typeof Message>[],
  { request, reply }: Exchange,
) {
  const spoken = request.headers["mcp-protocol-version"] ?? BATCHES;
  if (spoken !== BATCHES)
    throw new RpcError(RPC.invalidRequest, `MCP ${spoken} has no batches. Send one message.`);
  const answers: object[] = [];
  for (const each of batch) {
    const call = await taken(services, each, request);
    if (call) answers.push(await answerInBatch(services, call, { request, reply }));
  }
  return answers.length > 0 ? reply.send(answers) : reply.code(202).send(null);
}

async function answerInBatch(
  services: RouteServices,
  { id, method, params }: Call,
  exchange: Exchange,
): Promise<object> {
  try {
    if (method === "tools/call") return await whole(services, id, params, exchange);
    return rpcResult(id, plainAnswer(services, method, { namesType: false }));
  } catch (error) {
    if (!(error instanceof AppError) || isBeforeCalls(error)) throw error;
    return rpcFailure(id, error);
  }
}

async function answer(services: RouteServices, { id, method, params }: Call, { request, reply }: Exchange) {
  if (method === "initialize") {
    const { protocolVersion, capabilities } = readParams(InitializeParams, params);
    return reply.header("mcp-session-id", newSession(capabilities)).send(
      rpcResult(id, {
        protocolVersion: versionFor(protocolVersion),
        capabilities: { tools: {} },
        serverInfo: serverInfo(services),
        instructions: INSTRUCTIONS,
      }),
    );
  }
  const client = clientOf(request, { method, params });
  if (method === "tools/call") return call(services, id, params, { client, request, reply });
  const result = plainAnswer(services, method, client);
  const told = client.namesType
    ? { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result }
    : result;
  return reply.send(rpcResult(id, told));
}

const serverInfo = ({ version }: RouteServices) => ({ name: "skein", version });

function plainAnswer(
  services: RouteServices,
  method: string,
  { namesType }: Pick<ClientOfCall, "namesType">,
): object {
  if (method === "ping") return {};
  if (method === "tools/list") return { tools: toolList(services.agents.list().map(({ name }) => name)) };
  if (method === "server/discover")
    return {
      supportedVersions: VERSIONS,
      capabilities: { tools: {} },
      instructions: INSTRUCTIONS,
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo(services) },
    };
  // Older revisions do not specify a status.
  throw unknownMethod(method, METHODS, namesType ? { status: 404 } : {});
}

const Cancelled = z.looseObject({ requestId: RpcId });

async function cancelCall(
  services: RouteServices,
  params: unknown,
  request: Exchange["request"],
): Promise<void> {
  requireScope(principalOf(request), "run");
  const session = sessionOf(request);
  const { requestId } = Cancelled.safeParse(params).data ?? {};
  if (session !== undefined && requestId !== undefined)
    await cancel(services, ownerOf(request), session, requestId);
}

/** Yields all frames except the first `seen` frames, which the client already has. */
function after(seen: number, frames: Frames): Frames {
  return async function* (signal) {
    let passed = 0;
    for await (const batch of frames(signal)) {
      const rest = batch.slice(Math.max(0, seen - passed));
      passed += batch.length;
      if (rest.length > 0) yield rest;
    }
  };
}
