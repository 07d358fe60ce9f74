// A server for agents in a program: the program's own agents, or those in an agents file. The server is the same as in
// `skein serve`.

import type { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import type { App, AppOptions, ProgramAgents } from "../../app.ts";
import { check, sentence } from "../../lib/check.ts";
import { ServerConfig } from "../../server/config/server.ts";
import type { Plugin } from "../../server/plugins/definition.ts";
import { withOwnBackends } from "./backends.ts";
import type { LocalAgent } from "./local-agent.ts";
import { localAgents } from "./local-agents.ts";
import { localRegistry } from "./registry.ts";

export interface ServerOptions {
  /**
   * The server's agents, with their subagents. A run that does not specify an agent uses the agent `default` or, if
   * there is none, the first agent.
   */
  readonly agents?: readonly LocalAgent[];
  /**
   * The path of an agents file, which is watched for changes. Cannot be combined with `agents`. Default:
   * `./agents.yaml`.
   */
  readonly agentsFile?: string;
  /** The keys of server.yaml, all of which have defaults. The environment and a file `config/server.yaml` are not read. */
  readonly config?: z.input<typeof ServerConfig>;
  /** Plugins as objects. Modules to import are listed in `config.plugins`, relative to the working directory. */
  readonly plugins?: readonly Plugin[];
  /** pino, or a logger with its interface. Default: pino on stderr, at `config.log_level`. */
  readonly logger?: AppOptions["logger"];
  /** The variables that contain the API keys of models in `agentsFile`. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}

export interface Server extends AsyncDisposable {
  /** The URL of the server, or undefined until the server listens. */
  readonly url: string | undefined;
  /**
   * Starts to accept requests and resolves with the address. Throws `config_invalid`, and `unavailable` if the port is
   * in use.
   */
  listen(): Promise<string>;
  /**
   * Returns the Fastify instance with all routes, for `inject`. It does not listen until `listen` is called. Throws the
   * same errors as `listen`.
   */
  fastify(): Promise<App["server"]>;
  /**
   * Ends runs within `shutdown.grace`, then closes everything that was opened. With a durable store, the next server
   * continues the runs.
   */
  close(): Promise<void>;
}

/**
 * Creates a server, which opens nothing until `listen` or `fastify` is called. The caller closes it. Throws
 * `config_invalid` with all problems of `config`.
 */
export function createServer(options: ServerOptions = {}): Server {
  if (options.agents && options.agentsFile !== undefined)
    throw new AppError(
      "config_invalid",
      "createServer: `agents` and `agentsFile` are both set. Set only one of them.",
    );
  const config = configOf(options);
  if (config.workers > 1)
    throw new AppError(
      "config_invalid",
      `createServer: config.workers must be 1, not ${config.workers}: a program serves in its own process. Only \`skein serve\` starts workers.`,
    );
  const agents = options.agents && programAgents(options.agents);
  let opening: Promise<App> | undefined;
  let listening: Promise<string> | undefined;
  let url: string | undefined;
  let isClosed = false;

  const open = (): Promise<App> => {
    if (isClosed) throw new AppError("shutting_down", "This server is closed. Create another one.");
    if (!opening) {
      opening = openApp(config, options, agents);
      opening.catch(() => {
        opening = undefined;
      });
    }
    return opening;
  };
  const close = async (): Promise<void> => {
    isClosed = true;
    const app = await opening?.catch(() => undefined);
    await app?.close();
    url = undefined;
  };

  return {
    get url() {
      return url;
    },
    async listen() {
      const app = await open();
      // After a failure, such as a port in use, `listen` may be called again.
      listening ??= app.listen().catch((error: unknown) => {
        listening = undefined;
        throw error;
      });
      url = await listening;
      return url;
    },
    async fastify() {
      const { server } = await open();
      await server.ready();
      return server;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function configOf({ config = {}, agentsFile }: ServerOptions): ServerConfig {
  const agents_file = agentsFile ?? config.agents_file;
  const checked = check(ServerConfig, { ...config, ...(agents_file === undefined ? {} : { agents_file }) });
  if ("value" in checked) return checked.value;
  throw new AppError(
    "config_invalid",
    checked.faults.map((fault) => `config: ${sentence(fault)}`).join("\n"),
  );
}

async function openApp(
  config: ServerConfig,
  { plugins = [], env = process.env, logger }: ServerOptions,
  agents: ProgramAgents | undefined,
): Promise<App> {
  // Imported here, because loading the server takes a long time and a program may import the library for another
  // purpose.
  const { createApp, createLogger } = await import("../../app.ts");
  return createApp({
    config,
    env,
    plugins,
    logger: logger ?? createLogger(config),
    ...(agents ? { agents } : {}),
  });
}

function programAgents(given: readonly LocalAgent[]): ProgramAgents {
  if (given.length === 0)
    throw new AppError("config_invalid", "createServer: `agents` must contain at least one agent.");
  const agents = localAgents();
  for (const agent of given) agents.add(agent);
  return {
    registry: (allowModels) => localRegistry(agents, allowModels),
    withOwn: (pool) => withOwnBackends((name) => agents.get(name)?.backend, pool),
  };
}
