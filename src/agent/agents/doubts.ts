// Warns about parts of a valid agents file that will fail when an agent uses them.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { z } from "zod";
import { type Fault, SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import type { Catalogue } from "./catalogue.ts";
import { modelsIn } from "./named-models.ts";
import { namedTools, type RawAgent } from "./raw-agent.ts";
import { isPattern, leftOut, reservedNames, settingOf } from "./tool-choice.ts";

/** Returns the warnings about one agent. */
export function doubtsOf(draft: RawAgent, catalogue: Catalogue): Fault[] {
  const models = modelsIn(draft, catalogue).flatMap(({ spec, path }) => {
    const message = catalogue.modelDoubt(spec);
    return message === undefined ? [] : [{ path, message }];
  });
  return [...unknownTools(draft, catalogue), ...idleTeam(draft, catalogue), ...models];
}

/** Warns about tool names that only tenants' tools could match. */
function unknownTools({ fields, placeOf }: RawAgent, catalogue: Catalogue): Fault[] {
  return namedTools(fields).flatMap((name, index) => {
    const message = nameDoubt(name, reservedNames(catalogue));
    return message === undefined ? [] : [{ path: [...placeOf("tools"), index], message }];
  });
}

function nameDoubt(name: string, builtIn: ReadonlySet<string>): string | undefined {
  if (isPattern(name) || name.startsWith("mcp__") || builtIn.has(name)) return undefined;
  const meant = didYouMean(name, builtIn) || ".";
  const setting = settingOf(name);
  const reason =
    setting === undefined ? `is not a built-in tool${meant}` : `needs \`${setting}\` in server.yaml.`;
  return `\`${name}\` ${reason} Only tenants that have registered a tool with this name have it.`;
}

/** Explains why a rule's tool name or pattern might not match any tool. Returns undefined if it could match one. */
export function patternDoubt(
  pattern: string,
  catalogue: Catalogue,
  servers: readonly string[],
): string | undefined {
  const server = /^mcp__([^*?[{]+?)__/.exec(pattern)?.[1];
  if (server !== undefined && !servers.includes(server))
    return `\`${pattern}\` matches no tool: there is no MCP server \`${server}\` under \`mcp_servers\`${didYouMean(server, servers)}`;
  return nameDoubt(pattern, reservedNames(catalogue));
}

/** Warns about `subagents` of an agent whose `tools` exclude every tool for delegation. */
function idleTeam({ fields, placeOf }: RawAgent, { hooks }: Catalogue): Fault[] {
  const needed = hooks.find(({ name }) => name === "subagents")?.tools ?? [];
  const without = leftOut(fields.tools === undefined ? undefined : namedTools(fields), hooks);
  const isIdle = needed.length > 0 && needed.every((name) => without.has(name));
  const hasTeam = Array.isArray(fields.subagents) && fields.subagents.length > 0;
  if (!hasTeam || !isIdle) return [];
  const message = `get no tasks: \`tools\` leaves out ${needed.join(", ")}`;
  return [{ path: placeOf("subagents"), message }];
}

/**
 * Warns about MCP servers whose program or folder does not exist. `PATH` lists the folders to search for
 * programs.
 */
export function serverDoubts(data: unknown, { PATH = "" }: Variables): Fault[] {
  const servers = Programs.safeParse(data, SELDOM).data?.mcp_servers ?? {};
  return Object.entries(servers).flatMap(([name, { command, cwd }]) => {
    const path = ["mcp_servers", name];
    const missing = "the MCP server cannot start until it exists";
    return [
      ...(cwd === undefined || existsSync(cwd)
        ? []
        : [{ path: [...path, "cwd"], message: `there is no folder \`${cwd}\`; ${missing}` }]),
      ...(command === undefined || isProgram(command, cwd, PATH)
        ? []
        : [{ path: [...path, "command"], message: `there is no program \`${command}\`; ${missing}` }]),
    ];
  });
}

const Programs = z.looseObject({
  mcp_servers: z.record(
    z.string(),
    z.looseObject({ command: z.string().optional(), cwd: z.string().optional() }),
  ),
});

function isProgram(command: string, cwd = ".", path: string): boolean {
  if (command.includes("/")) return existsSync(command.startsWith("/") ? command : join(cwd, command));
  return path.split(delimiter).some((folder) => existsSync(join(folder, command)));
}
