// The tenant's callback tools, and the URL that receives their deferred results.

import { z } from "zod";
import { tokenHash } from "../../../agent/core/deferred-calls.ts";
import { replyResult } from "../../../agent/core/delivered-result.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { Content } from "../../../agent/core/message.ts";
import {
  changedHttpTool,
  HttpToolChange,
  HttpToolInfo,
  HttpToolRegistration,
  httpToolInfo,
  newHttpTool,
  RegisteredHttpTool,
} from "../../../agent/tools/http/registration.ts";
import { deliverResult, isDeliverable } from "../../../engine/runs/index.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { ownerOf } from "../../auth/guard.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { inSlices, jsonOf, objectOf, payloadOf } from "../long-responses.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type App, fittingJson } from "../validation.ts";

const ToolParams = z.object({ name: z.string().max(64) });
const TokenParams = z.object({ token: z.string().max(128) });
const Delivered = z
  .record(z.string(), z.unknown())
  .describe("`{result}` or `{error}`, as in the response to a call.")
  .meta({ id: "ToolResult" });

const TriedTool = z
  .object({
    output: Content.describe("Output as a model would see it."),
    error: z.string().optional().describe("Present only if the call failed."),
    duration_ms: z.int(),
  })
  .meta({ id: "TriedTool" });

export function toolRoutes(
  app: App,
  { httpTools, agents, runs, isRefusedTool, tryTool, unreadResponses }: RouteServices,
): void {
  const tags = ["tools"];
  const toJson = fittingJson(app, HttpToolInfo, { method: "GET", url: "/tools" });

  app.get(
    "/tools",
    {
      schema: {
        summary: "List the tenant's registered tools, by name",
        tags,
        querystring: PageQuery,
        response: { 200: pageOf(HttpToolInfo) },
      },
    },
    async (request, reply) => {
      const { limit, cursor: after } = request.query;
      const { tenant } = ownerOf(request);
      // Reads one more item than the page contains, to find out whether there is a next page.
      const found = await httpTools.list(tenant, { limit: limit + 1, ...omitUndefined({ after }) });
      const page = found.slice(0, limit);
      const next_cursor = found[limit] && page.at(-1)?.name;
      const lists = inSlices(tenant, page, (tool) => toJson(httpToolInfo(tool)));
      const answer = objectOf(tenant, { name: "items", lists, restOf: () => ({ next_cursor }) });
      return jsonOf(reply, await payloadOf(answer, () => unreadResponses.open(reply)));
    },
  );

  app.post(
    "/tools",
    {
      schema: {
        summary: "Register a tool that an HTTP endpoint of the tenant executes",
        description:
          "Agents that list the tool in `tools` can call it from their next run. If a tool with the same name exists, this one replaces it and gets a new secret. Unless the operator allows it, Skein refuses a `callback_url` whose host has a non-public address. A host that does not resolve yet is accepted.",
        tags,
        body: HttpToolRegistration,
        response: { 201: RegisteredHttpTool },
      },
    },
    async (request, reply) => {
      const tool = await newHttpTool(request.body, {
        isTaken: (name) => agents.isReserved(name),
        isRefused: isRefusedTool,
      });
      await httpTools.put(ownerOf(request).tenant, tool);
      return reply.code(201).send({ ...httpToolInfo(tool), secret: tool.secret });
    },
  );

  app.post(
    "/tools/:name/try",
    {
      schema: {
        summary: "Call a registered tool once, without a run",
        description:
          "Sends the endpoint the same signed request as a run does, and returns its response. The response reaches no model and no thread. The endpoint cannot deliver the result later because the call has no `result_url`.",
        tags,
        params: ToolParams,
        body: z.strictObject({ args: z.record(z.string(), z.unknown()).default({}) }),
        response: { 200: TriedTool },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const tool = await httpTools.get(owner.tenant, request.params.name);
      if (!tool) throw noTool(request.params.name);
      return tryTool(owner, tool, request.body.args, clientDisconnect(reply));
    },
  );

  app.patch(
    "/tools/:name",
    {
      schema: {
        summary: "Change a registered tool without changing its secret",
        description:
          "Fields that you omit keep their values; `headers` are merged. The change applies to runs that start afterwards.",
        tags,
        params: ToolParams,
        body: HttpToolChange,
        response: { 200: HttpToolInfo },
      },
    },
    async (request) => {
      const { name } = request.params;
      const checks = { isTaken: (each: string) => agents.isReserved(each), isRefused: isRefusedTool };
      const tool = await httpTools.change(ownerOf(request).tenant, name, (before) =>
        changedHttpTool(before, request.body, checks),
      );
      if (!tool) throw noTool(name);
      return httpToolInfo(tool);
    },
  );

  app.delete(
    "/tools/:name",
    { schema: { summary: "Remove a tool", tags, params: ToolParams, response: { 204: z.null() } } },
    async (request, reply) => {
      const { name } = request.params;
      if (!(await httpTools.delete(ownerOf(request).tenant, name))) throw noTool(name);
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/tool-results/:token",
    {
      // Checked before the body is read, because this route requires no credentials.
      onRequest: async ({ params }) => {
        const { token } = params as z.infer<typeof TokenParams>;
        if (!(await isDeliverable(runs, tokenHash(token)))) throw notAwaited();
      },
      schema: {
        summary: "Deliver a deferred tool result",
        description:
          "Send the result once, to the address that the call contained. The address is secret, so no credentials are needed. Returns 204 if the result reaches the thread: in the call's place or, if the conversation has continued without it, as a separate message. Sending the same result again within a day also returns 204. Returns 404 if no call is waiting for the result.",
        tags,
        params: TokenParams,
        body: Delivered,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      if (!replyResult(request.body))
        throw new AppError("invalid_request", "Invalid body: send `result` or `error`.");
      if (!(await deliverResult(runs, tokenHash(request.params.token), request.body))) throw notAwaited();
      return reply.code(204).send(null);
    },
  );
}

const noTool = (name: string) => new AppError("not_found", `There is no tool \`${name}\`.`);

const notAwaited = () =>
  new AppError(
    "not_found",
    "No tool call waits for a result at this address: it was used, has expired, or the call has its result.",
  );
