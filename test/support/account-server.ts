// A server whose users connect their accounts at an MCP server in a browser, with a real authorization server.

import { randomBytes } from "node:crypto";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { createClient } from "../../src/client/client.ts";
import { omitUndefined } from "../../src/lib/omit-undefined.ts";
import { type AuthorizationServer, authorizationServer } from "./authorization-server.ts";
import { type OAuthMcpServer, oauthMcpServer } from "./connecting.ts";
import { type ServerOptions, startServer } from "./server.ts";

export interface Deployment {
  readonly issuer: AuthorizationServer;
  readonly calendar: OAuthMcpServer;
}

export async function deployment(): Promise<Deployment> {
  const issuer = await authorizationServer();
  return { issuer, calendar: await oauthMcpServer(issuer) };
}

const agentsOf = ({ calendar }: Deployment, { auth = "{ oauth: {} }", per = "user", rules = "[]" } = {}) => `
mcp_servers:
  calendar: { url: "${calendar.url}", per: ${per}, auth: ${auth}, trust_annotations: true }
agents:
  assistant: { model: "scripted:test", tools: ["mcp__calendar__*"], hooks: { todos: false }, permissions: { mode: bypass, rules: ${rules} } }
`;

const list = { call: [{ tool: "mcp__calendar__list", args: {} }] };
const ask = { call: [{ tool: "mcp__calendar__connect", args: {} }] };
/** Asks for the account, then uses it. */
export const looks = (text: string): Turn =>
  text.includes("look") ? ask : text.includes("are now available") ? list : { say: "done" };

interface Serving extends ServerOptions {
  readonly auth?: string;
  readonly per?: string;
  /** The permission rules of the agent. */
  readonly rules?: string;
}

export async function serve(parts: Deployment, { auth, per, rules, config, ...more }: Serving = {}) {
  const script = ({ messages }: { messages: readonly unknown[] }) => looks(JSON.stringify(messages.at(-1)));
  const server = await startServer({
    agents: agentsOf(parts, omitUndefined({ auth, per, rules })),
    script: script as never,
    ...more,
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
      http_tools: { allow: "127.0.0.1" },
      vault: { key: randomBytes(32).toString("base64") },
      ...config,
    },
  });
  const as = (user: string, tenant = "acme", scopes = "read,run,admin") => {
    const headers = { "x-skein-tenant": tenant, "x-skein-user": user, "x-skein-scopes": scopes };
    const client = createClient({ baseUrl: server.url, headers });
    return {
      headers,
      client,
      address: async () => (await client.connections.authorize("calendar")).url,
      connections: async () => (await client.connections.list()).items,
      /** Ends when the run does. */
      async run(input: string, thread = "t") {
        for await (const _ of client.run(thread, { input }));
      },
      interrupts: (thread = "t") => client.interrupts(thread),
      /** What an export of the user has of a type. */
      async exported(type: string) {
        const path = `${server.url}/admin/tenants/${tenant}/users/${user}/export`;
        const text = await (await fetch(path, { headers })).text();
        return text.split("\n").filter((line) => line.includes(`"type":"${type}"`));
      },
      messages: async (thread = "t") => JSON.stringify(await client.threads.messages(thread)),
    };
  };
  return { ...server, as };
}
