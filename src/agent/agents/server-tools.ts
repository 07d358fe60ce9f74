// The tools of MCP servers in a run. They may appear and disappear during the run.

import { orAborted } from "../../lib/async.ts";
import { warning } from "../../protocol/event.ts";
import type { Hook } from "../core/hook.ts";
import type { Agent } from "../core/runnable-agent.ts";
import type { Tool } from "../core/tool.ts";
import type { Catalogue } from "./catalogue.ts";
import { chosenTools, isPattern, namesServer, toolMatcher } from "./tool-choice.ts";

interface ServerTools {
  readonly tools: Pick<Agent, "currentTools" | "absence">;
  /**
   * Hooks that wait once for servers that have not answered yet, and then warn about unavailable ones. Empty
   * if all servers are available.
   */
  readonly hooks: readonly Hook[];
}

/** Returns an agent's tools from MCP servers, or undefined if `choice` names none. */
export function serverToolsOf(choice: readonly string[], catalogue: Catalogue): ServerTools | undefined {
  if (!choice.some((text) => text.startsWith("mcp__") || isPattern(text))) return undefined;
  const { serverTools, absentServers, serversListed, accountServers } = catalogue;
  const absent = () => (absentServers?.() ?? []).filter(({ server }) => namesServer(choice, server));
  return {
    tools: {
      currentTools: chosenFrom(choice, () => serverTools?.() ?? []),
      absence: (tool) => absenceOf(choice, absent)(tool) ?? unconnected(accountServers?.() ?? [], tool),
    },
    hooks: absent().length > 0 ? [waiting(absent, serversListed)] : [],
  };
}

type Absent = () => ReturnType<NonNullable<Catalogue["absentServers"]>>;

const waiting = (absent: Absent, listed: Catalogue["serversListed"]): Hook => ({
  name: "mcp",
  async *beforeAgent({ signal }) {
    const names = absent().map(({ server }) => server);
    if (listed) await orAborted(listed(names), signal);
    for (const { server, why } of absent())
      yield warning(
        "mcp_unavailable",
        `MCP server \`${server}\` ${why}. This run can use its tools once it answers.`,
      );
  },
});

/** Filters the tools, and filters them again only after the list has changed. */
function chosenFrom(choice: readonly string[], list: () => readonly Tool[]): () => readonly Tool[] {
  let [last, chosen]: (readonly Tool[])[] = [];
  return () => {
    const tools = list();
    if (chosen === undefined || tools !== last) chosen = chosenTools(choice, tools);
    last = tools;
    return chosen;
  };
}

function absenceOf(choice: readonly string[], absent: Absent) {
  return (tool: string): string | undefined => {
    const found = absent().find(({ server }) => tool.startsWith(`mcp__${server}__`));
    if (!found || !choice.some((text) => toolMatcher(text)(tool))) return undefined;
    return `MCP server \`${found.server}\` is not available yet: it ${found.why}. Try again later.`;
  };
}

/**
 * Explains why a call that waited for an account does not find its tool. If the account is still missing, its
 * server has not listed any tools.
 */
function unconnected(servers: readonly string[], tool: string): string | undefined {
  const server = servers.find((name) => tool.startsWith(`mcp__${name}__`));
  if (server === undefined) return undefined;
  return `The account at MCP server \`${server}\` is not connected. Continue without it, or call \`mcp__${server}__connect\` if you need it.`;
}
