// Loads the server's settings from the environment and from its configuration file.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { pluginRefs } from "../../agent/core/plugin-ref.ts";
import { SELDOM } from "../../lib/check.ts";
import { readText } from "../../lib/read-text.ts";
import { readTls } from "../../lib/tls-files.ts";
import { MAX_YAML_BYTES, readYaml } from "../../lib/yaml/document.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { authProblems } from "../auth/config.ts";
import { override, readEnvironment } from "./environment.ts";
import { ServerConfig } from "./server.ts";

const DEFAULT_FILE = "config/server.yaml";

/** Throws `config_invalid` with all problems, one per line. */
export async function loadServerConfig(env: Variables): Promise<ServerConfig> {
  const environment = readEnvironment(env);
  const file = await readServerFile(env);
  if ("value" in environment && "value" in file) {
    const config = override(file.value, environment.value);
    // Plugins are loaded later, so their schemes are not known yet.
    const own = config.plugins.length > 0 ? "any" : [];
    const wrong = [
      ...authProblems(config.listen.host, config.auth, own),
      ...(await engineProblems(config.backends.docker)),
      ...workerProblems(config),
    ];
    if (wrong.length === 0) return config;
    throw new AppError("config_invalid", wrong.join("\n"));
  }
  const problems = [environment, file].flatMap((part) => ("problems" in part ? part.problems : []));
  throw new AppError("config_invalid", problems.join("\n"));
}

/** Returns questionable values in the file, one per line, with their locations. Empty if the file cannot be read. */
export async function settingsDoubts(env: Variables): Promise<string[]> {
  const path = env.CONFIG_FILE || DEFAULT_FILE;
  const read = await readText(path, MAX_YAML_BYTES);
  if ("fault" in read) return [];
  const { doubts, linesOf } = readYaml(path, read.text, env);
  return linesOf(doubts);
}

async function engineProblems({ host, engines }: ServerConfig["backends"]["docker"]): Promise<string[]> {
  if (!engines) return [];
  const several =
    "backends.docker.engines: is not allowed together with DOCKER_HOST or `backends.docker.host`";
  const files = engines.map(async ({ name, tls }) => {
    const read = tls && (await readTls(tls));
    const problems = read && "problems" in read ? read.problems : [];
    return problems.map((problem) => `backends.docker.engines: \`${name}\`: tls.${problem}`);
  });
  const both = host === undefined ? [] : [`${several}; remove one of them`];
  return [...both, ...(await Promise.all(files)).flat()];
}

/**
 * Memory and SQLite work with one process only: other processes cannot reach the data in memory, and the SQLite file is
 * locked.
 */
function workerProblems({ workers, store }: ServerConfig): string[] {
  if (workers === 1 || store === "redis" || store === "postgres") return [];
  return [
    `workers: ${workers} needs a store that several processes share, but STORE is ${store}. Set STORE=redis or STORE=postgres, or use 1 worker.`,
  ];
}

/** A file that contains only comments is valid. */
const FileContent = z.preprocess((data) => data ?? {}, ServerConfig);

/** The default file may be missing. A file set by `CONFIG_FILE` must exist. */
async function readServerFile(env: Variables): Promise<{ value: ServerConfig } | { problems: string[] }> {
  const path = env.CONFIG_FILE || DEFAULT_FILE;
  const read = await readText(path, MAX_YAML_BYTES);
  if ("text" in read) return checkText(path, read.text, env);
  if (read.isMissing && !env.CONFIG_FILE) return { value: ServerConfig.parse({}, SELDOM) };
  return { problems: [`${env.CONFIG_FILE ? "environment: CONFIG_FILE: " : ""}\`${path}\` ${read.fault}`] };
}

function checkText(path: string, text: string, env: Variables) {
  const document = readYaml(path, text, env);
  const checked = document.check(FileContent);
  if ("problems" in checked) return { problems: document.linesOf(checked.problems) };
  const modules = checked.value.plugins.map(({ module }) => module);
  const plugins = pluginRefs(modules, path).map((ref) => ({ ...ref, place: `${path}: ${ref.place}` }));
  return { value: { ...checked.value, plugins } };
}
