// The card with which other agents discover an agent of this server. It is public, so it contains the agent's name and
// description, but neither its prompt nor its tools.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { AgentInfo } from "../../../agent/agents/registry.ts";
import type { RouteServices } from "../../../server/http/services.ts";

export const AgentCard = z.looseObject({ name: z.string(), version: z.string() });

const INPUT_MODES = [
  ...["text/plain", "application/json", "application/pdf"],
  ...["image/png", "image/jpeg", "image/gif", "image/webp"],
];

export function cardOf(
  { name, description = `The agent ${name}.` }: AgentInfo,
  { access, version }: Pick<RouteServices, "access" | "version">,
  request: FastifyRequest,
) {
  const origin = access.publicUrl ?? `${request.protocol}://${request.host}`;
  const url = `${origin.replace(/\/$/, "")}/a2a/${encodeURIComponent(name)}`;
  const authenticated = {
    securitySchemes: {
      key: { httpAuthSecurityScheme: { scheme: "Bearer" }, type: "http", scheme: "bearer" },
    },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    security: [{ key: [] }],
  };
  return {
    name,
    description,
    version,
    supportedInterfaces: ["1.0", "0.3"].map((protocolVersion) => ({
      url,
      protocolBinding: "JSONRPC",
      protocolVersion,
    })),
    ...OLDER,
    url,
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    ...(access.auth.scheme === "none" ? {} : authenticated),
    defaultInputModes: INPUT_MODES,
    defaultOutputModes: ["text/plain"],
    skills: [{ id: name, name, description, tags: ["agent"] }],
  };
}

/** Fields for 0.3 and 0.2 clients, in addition to `url`. 1.0 clients ignore them. */
const OLDER = { protocolVersion: "0.3.0", preferredTransport: "JSONRPC" };
