// The whole server, in this process, on a real port, as a front end meets it.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import type { HookDefinition } from "../../src/agent/core/hook.ts";
import type { Model } from "../../src/agent/core/model.ts";
import type { Tool } from "../../src/agent/core/tool.ts";
import { type Script, scriptedModel, type Turn } from "../../src/agent/models/scripted.ts";
import { type App, createApp } from "../../src/app.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import type { Plugin } from "../../src/server/plugins/definition.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
`;

export interface ServerOptions {
  script?: readonly Turn[] | Script;
  model?: Model;
  /** The models that the agents' file names, instead of a script. */
  realModels?: boolean;
  tools?: readonly Tool[];
  hooks?: readonly HookDefinition[];
  plugins?: readonly Plugin[];
  agents?: string;
  config?: object;
  env?: NodeJS.ProcessEnv;
  /** A folder that outlives the server; default: one of its own. */
  dir?: string;
  logger?: FastifyBaseLogger;
  /** The clock of the store. */
  now?: () => number;
}

export interface TestServer {
  readonly url: string;
  readonly app: App;
  readonly dir: string;
}

/** Starts what a test speaks to. */
export type Deploy = (options: ServerOptions) => Promise<TestServer>;

let deploy: Deploy = startOne;

/** From now on the tests of this file speak to another deployment: see deployments.ts. */
export function deployAs(other: Deploy): void {
  deploy = other;
}

/** Closed, and its folder removed, when the test has finished. */
export const startServer = (options: ServerOptions = {}): Promise<TestServer> => deploy(options);

/** One server of this process, in any deployment. Closed as above. */
export async function startOne(options: ServerOptions = {}): Promise<TestServer> {
  const dir = options.dir ?? (await temporaryFolder());
  await writeFile(join(dir, "agents.yaml"), options.agents ?? AGENTS);
  const config = ServerConfig.parse({
    store: "memory",
    data_dir: join(dir, "data"),
    agents_file: join(dir, "agents.yaml"),
    listen: { port: 0 },
    shutdown: { grace: "0.2s" },
    // The tests of this process share its event loop.
    event_loop: { warn_after: 0 },
    ...options.config,
  });
  const model = options.model ?? scriptedModel(options.script ?? [{ say: "ok" }]);
  const app = await createApp({
    config,
    env: options.env ?? {},
    logger: options.logger ?? pino({ level: "silent" }),
    ...(options.realModels ? {} : { createModel: () => model }),
    tools: options.tools ?? [],
    hooks: options.hooks ?? [],
    plugins: options.plugins ?? [],
    ...(options.now ? { now: options.now } : {}),
  });
  onTestFinished(() => app.close());
  return { url: await app.listen(), app, dir };
}

export async function temporaryFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "skein-"));
  // A process that is about to end may still write there.
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 10 }));
  return dir;
}
