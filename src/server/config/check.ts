// The report of `skein config check`: everything that prevents the server from starting, and settings that will fail
// later.

import { AppError } from "../../agent/core/errors.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { loadServerConfig, settingsDoubts } from "./load.ts";
import { ServerConfig } from "./server.ts";

export interface ConfigReport {
  /** One problem per line, each with its location. Empty if the server would start. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly summary: string;
}

interface Agents {
  readonly definitions: readonly unknown[];
  readonly warnings: readonly string[];
}

/** Checks the server's settings, then the plugins in them (with `loadPlugins`), then the agents (with `loadAgents`). */
export async function checkConfig(
  env: Variables,
  loadAgents: (file: string) => Promise<Agents>,
  loadPlugins: (config: ServerConfig) => Promise<void> = async () => {},
): Promise<ConfigReport> {
  const server = await attempt(loadServerConfig(env));
  const plugins = "value" in server ? await attempt(loadPlugins(server.value)) : server;
  // The agents are checked even if the server's settings are wrong.
  const { agents_file } = "value" in server ? server.value : ServerConfig.parse({});
  const agents = await attempt(loadAgents(env.AGENTS_FILE || agents_file));
  const problems = [...new Set([server, plugins, agents])].flatMap((part) =>
    "problems" in part ? part.problems : [],
  );
  const { definitions, warnings: ofAgents } =
    "value" in agents ? agents.value : { definitions: [], warnings: [] };
  const warnings = [...(await settingsDoubts(env)), ...ofAgents];
  const summary = problems.length > 0 ? counted(problems, "problem") : `ok: ${counted(definitions, "agent")}`;
  return { problems, warnings, summary };
}

async function attempt<T>(work: Promise<T>): Promise<{ value: T } | { problems: string[] }> {
  try {
    return { value: await work };
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "config_invalid") throw error;
    return { problems: error.message.split("\n") };
  }
}

const counted = (things: readonly unknown[], name: string) =>
  `${things.length} ${name}${things.length === 1 ? "" : "s"}`;
