// The tools that tenants register: the addresses that they may use, their use in runs, and single calls outside runs.

import type { AgentRegistry } from "../../agent/agents/registry.ts";
import { namesServer } from "../../agent/agents/tool-choice.ts";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import { OPEN_ENDED } from "../../agent/core/open-interrupts.ts";
import { unrecordedRun } from "../../agent/core/run.ts";
import { drain, toStream } from "../../agent/core/stream.ts";
import type { Tool, ToolResult } from "../../agent/core/tool.ts";
import { createHttpTools, type HttpToolServices } from "../../agent/tools/http/index.ts";
import type { HttpTool } from "../../agent/tools/http/registration.ts";
import type { HttpToolStore } from "../../agent/tools/http/store.ts";
import type { McpServers } from "../../agent/tools/mcp/servers.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { AccountServer } from "../../engine/vault/oauth/discovery.ts";
import type { OAuthOptions } from "../../engine/vault/oauth/parts.ts";
import { hostList, isLoopback } from "../../lib/hosts.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { randomId } from "../../lib/random-id.ts";
import { createPublicFetch, isRefused } from "../../lib/ssrf-safe-fetch/index.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import type { HttpServices } from "../../server/http/services.ts";

/** The time limit of a DNS lookup at registration, in ms. A name that takes longer is checked when the tool is called. */
const LOOKUP_MS = 2_000;

export function refusedTools({ http_tools }: ServerConfig): (url: URL) => Promise<boolean> {
  const options = { allow: hostList(http_tools.allow) };
  return (url) => isRefused(url, options, AbortSignal.timeout(LOOKUP_MS));
}

/**
 * Reads the tenants' registered tools when a run starts. `address` returns this server's own address, or undefined
 * until the server listens.
 */
export function tenantTools(
  config: ServerConfig,
  httpTools: HttpToolStore,
  { deferredCalls: store }: AllStores,
  address: () => string | undefined,
) {
  const services = servicesOf(config);
  return async ({ tenant }: Owner, agent: string) => {
    const tools = await httpTools.listFor(tenant, agent);
    const made = tools.map((tool) => {
      const base = resultAddress(tool, config, address());
      const urlOf = (token: string) => `${base}/tool-results/${token}`;
      return createHttpTools(
        [tool],
        base === undefined ? services : { ...services, deferral: { store, urlOf } },
      );
    });
    return (await Promise.all(made)).flat();
  };
}

type OwnersTools = (owner: Owner, agent: string) => Promise<readonly Tool[]>;

/** Returns the tools of the MCP servers that the run's owner has connected and that the agent names. */
export const ownersTools =
  (agents: Pick<AgentRegistry, "find">, mcp: Pick<McpServers, "toolsOf">): OwnersTools =>
  async (owner, agent) => {
    const { tools: choice = [] } = agents.find(agent);
    return mcp.toolsOf(owner, (server) => namesServer(choice, server));
  };

export const bothTools =
  (...sources: readonly OwnersTools[]): OwnersTools =>
  async (owner, agent) =>
    (await Promise.all(sources.map((toolsOf) => toolsOf(owner, agent)))).flat();

function servicesOf({ http_tools }: ServerConfig): HttpToolServices {
  return {
    fetch: createPublicFetch({ allow: hostList(http_tools.allow) }),
    trustAnnotations: http_tools.trust_annotations,
  };
}

/**
 * Returns the URL to which a tool delivers deferred results. Without `public_url`, a tool on this machine can still
 * reach a server that listens only on this machine.
 */
export function resultAddress(
  { callback_url }: Pick<HttpTool, "callback_url">,
  { public_url, listen }: Pick<ServerConfig, "public_url" | "listen">,
  address: string | undefined,
): string | undefined {
  if (public_url !== undefined) return public_url;
  const { hostname } = new URL(callback_url);
  return isLoopback(listen.host) && isLoopback(hostname.replace(/^\[|\]$/g, "")) ? address : undefined;
}

/** Calls a tool once, outside any run. Throws `invalid_request` if the arguments do not match its parameters. */
export function toolTrial(config: ServerConfig): HttpServices["tryTool"] {
  const services = servicesOf(config);
  return async (owner, tool, args, signal) => {
    const made = await createHttpTools([tool], services);
    const began = performance.now();
    try {
      const result = await resultOf(made, { owner, args, signal });
      const { output, error } = result.status === "done" ? result : { output: "" };
      return { output, ...omitUndefined({ error }), duration_ms: since(began) };
    } catch (error) {
      if (signal.aborted || error instanceof AppError) throw error;
      return { output: "", error: messageOf(error), duration_ms: since(began) };
    }
  };
}

async function resultOf(
  [tool]: readonly Tool[],
  { owner, args, signal }: { owner: Owner; args: Record<string, unknown>; signal: AbortSignal },
): Promise<ToolResult> {
  if (!tool) throw new AppError("internal", "No tool was made.");
  await tool.prepare?.();
  const parsed = tool.parse(args);
  if ("faults" in parsed) throw new AppError("invalid_request", `args: ${parsed.faults.join("; ")}`);
  const run = unrecordedRun(
    { owner, threadId: newThreadId(), signal },
    { name: "try", interrupts: OPEN_ENDED },
  );
  const call = { id: `try_${randomId()}`, name: tool.name, args };
  return drain(toStream(tool.execute(parsed.args, call, run)));
}

const since = (began: number) => Math.round(performance.now() - began);

/** The MCP servers whose accounts the server connects by OAuth. */
export function accountServers(
  mcp: Pick<McpServers, "accountsAt" | "ofOwners">,
): Pick<OAuthOptions, "serverOf" | "servers"> {
  const serverOf = (name: string): AccountServer | undefined => {
    const definition = mcp.accountsAt(name);
    if (!definition?.auth) return undefined;
    const { url, per, headers, auth } = definition;
    return { name, url, per, headers, oauth: auth.oauth };
  };
  return { serverOf, servers: () => mcp.ofOwners().flatMap((name) => serverOf(name) ?? []) };
}
