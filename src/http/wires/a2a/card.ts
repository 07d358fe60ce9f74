// The card by which other agents find an agent of this server. It is public: it names the agent, and nothing of its prompt and tools.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import type { AgentInfo } from "../../../agents/registry.ts";
import type { RouteServices } from "../../services.ts";

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
    securitySchemes: { key: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
  };
  return {
    name,
    description,
    version,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    ...(access.auth.scheme === "none" ? {} : authenticated),
    defaultInputModes: INPUT_MODES,
    defaultOutputModes: ["text/plain"],
    skills: [{ id: name, name, description, tags: ["agent"] }],
  };
}
