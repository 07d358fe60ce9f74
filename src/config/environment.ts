// The environment variables that override config/server.yaml. A variable that is empty counts as not set.

import { z } from "zod";
import { check, sentence } from "../lib/check.ts";
import { given } from "../lib/given.ts";
import type { Variables } from "../lib/interpolate.ts";
import { DockerHost, Host, LogLevel, Port, type ServerConfig, StoreKind } from "./server.ts";

const Settings = z.object({
  CONFIG_FILE: z.string().optional(),
  HOST: Host.optional(),
  PORT: z.string().regex(/^\d+$/, "must be a whole number").transform(Number).pipe(Port).optional(),
  DATA_DIR: z.string().optional(),
  AGENTS_FILE: z.string().optional(),
  STORE: StoreKind.optional(),
  DOCKER_HOST: DockerHost.optional(),
  LOG_LEVEL: LogLevel.optional(),
  ALLOW_LOCAL_BACKEND: z
    .enum(["true", "false", "1", "0"])
    .transform((text) => text === "true" || text === "1")
    .optional(),
});
export type Settings = z.output<typeof Settings>;

export function readEnvironment(env: Variables): { value: Settings } | { problems: string[] } {
  const set = Object.fromEntries(
    Object.keys(Settings.shape).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );
  const checked = check(Settings, set);
  if ("value" in checked) return checked;
  return {
    problems: checked.faults.map((fault) => `environment: ${sentence(fault, env[String(fault.path[0])])}`),
  };
}

/** `config` with what the environment says instead. */
export function override(config: ServerConfig, settings: Settings): ServerConfig {
  const { HOST, PORT, DATA_DIR, AGENTS_FILE, STORE, LOG_LEVEL, ALLOW_LOCAL_BACKEND, DOCKER_HOST } = settings;
  return {
    ...config,
    ...given({ data_dir: DATA_DIR, agents_file: AGENTS_FILE, store: STORE, log_level: LOG_LEVEL }),
    listen: { ...config.listen, ...given({ host: HOST, port: PORT }) },
    backends: {
      ...config.backends,
      ...given({ allow_local: ALLOW_LOCAL_BACKEND }),
      docker: { ...config.backends.docker, ...given({ host: DOCKER_HOST }) },
    },
  };
}
