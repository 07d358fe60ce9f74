// A2A over JSON-RPC, 1.0 and older: agents for other agents. docs/reference/wires/a2a.md shows how to connect one.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { docsPage } from "../../lib/docs.ts";
import { OLD_SERVER_CARD, SERVER_CARD } from "../../server/config/wire-names.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { readRequest } from "../json-rpc.ts";
import { CURRENT, currentMethod, OLDER } from "./dialect.ts";
import { A2A, RPC, RpcError, sendA2aError } from "./errors.ts";
import { answer } from "./methods.ts";
import { AgentCard, cardOf } from "./resources/card.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const Message = z.looseObject({
  jsonrpc: z.string().optional().describe("`2.0`."),
  id: z.unknown().optional().describe("A string or an integer."),
  method: z.string().optional(),
  params: z.looseObject({ id: z.unknown().optional().describe("Id of a task.") }).optional(),
});
const RpcAnswer = z.looseObject({ jsonrpc: z.literal("2.0") });
const Updates = z
  .string()
  .describe("Server-Sent Events with a JSON-RPC response as `data`, each with an update of the task.");

export function a2aRoutes(app: App, services: RouteServices): void {
  const wire = { services };
  const tags = ["a2a"];
  app.setErrorHandler<Error>(sendA2aError);

  for (const card of [SERVER_CARD, OLD_SERVER_CARD])
    app.get(
      `/:agent${card}`,
      { schema: { summary: "Get an agent's card", tags, params: AgentParams, response: { 200: AgentCard } } },
      async (request) => cardOf(agentNamed(services, request.params.agent), services, request),
    );

  app.post(
    "/:agent",
    {
      sse: "manual",
      schema: {
        summary: "Send an A2A request",
        description: `Accepts one JSON-RPC request of the Agent2Agent protocol, version 1.0 or 0.3. See ${docsPage("reference/wires/a2a.md")}.`,
        tags,
        params: AgentParams,
        headers: z.looseObject({ "a2a-version": z.string().max(64).optional() }),
        body: Message,
        response: {
          200: {
            content: { "text/event-stream": { schema: Updates }, "application/json": { schema: RpcAnswer } },
          },
        },
      },
    },
    async (request, reply) => {
      const { id, method: called, params: sent } = readRequest(request.body);
      if (id === undefined)
        throw new RpcError(RPC.invalidRequest, "The request has no `id`. Notifications are not supported.");
      const older = currentMethod(called);
      const method = older ?? called;
      const dialect = older === undefined ? CURRENT : OLDER;
      if (older === undefined) checkVersion(request.headers["a2a-version"]);
      const agent = agentNamed(services, request.params.agent).name;
      return answer(wire, method, { id, params: dialect.paramsOf(sent), agent, request, reply, dialect });
    },
  );
}

/** Serves the default agent's card at the path where the standard looks for a server's card. */
export function a2aServerCard(app: App, services: RouteServices): void {
  for (const card of [SERVER_CARD, OLD_SERVER_CARD])
    app.get(
      card,
      {
        schema: { summary: "Get the card of the default agent", tags: ["a2a"], response: { 200: AgentCard } },
      },
      async (request) =>
        cardOf(agentNamed(services, services.agents.find(undefined).name), services, request),
    );
}

function agentNamed({ agents }: Pick<RouteServices, "agents">, name: string) {
  const all = agents.list();
  const agent = all.find((each) => each.name === name);
  if (agent) return agent;
  const names = all.map((each) => `\`${each.name}\``).join(", ");
  throw new AppError("not_found", `There is no agent \`${name}\`. Use one of: ${names}.`);
}

/** Throws `RpcError` for a 1.0 method if the client does not declare version 1.0. */
function checkVersion(version: unknown): void {
  if (typeof version === "string" && /^1(\.\d+)*$/.test(version)) return;
  throw new RpcError(
    A2A.version,
    "This method belongs to A2A 1.0. Send the header `A2A-Version: 1.0`, or use `message/send` of version 0.3.",
  );
}
