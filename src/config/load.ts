// Loads the server's settings from the environment and the file that it names.

import { z } from "zod";
import { AppError } from "../core/errors.ts";
import { authProblems } from "../http/auth/config.ts";
import { readText } from "../lib/read-text.ts";
import { MAX_YAML_BYTES, readYaml } from "../lib/yaml/document.ts";
import type { Variables } from "../lib/yaml/variables.ts";
import { override, readEnvironment } from "./environment.ts";
import { ServerConfig } from "./server.ts";

const DEFAULT_FILE = "config/server.yaml";

/** Throws `config_invalid` with every problem, one a line. */
export async function loadServerConfig(env: Variables): Promise<ServerConfig> {
  const environment = readEnvironment(env);
  const file = await readServerFile(env);
  if ("value" in environment && "value" in file) {
    const config = override(file.value, environment.value);
    const wrong = authProblems(config.listen.host, config.auth);
    if (wrong.length === 0) return config;
    throw new AppError("config_invalid", wrong.join("\n"));
  }
  const problems = [environment, file].flatMap((part) => ("problems" in part ? part.problems : []));
  throw new AppError("config_invalid", problems.join("\n"));
}

/** A file with comments only is valid. */
const FileContent = z.preprocess((data) => data ?? {}, ServerConfig);

/** The default file may be missing; a file that is named must exist. */
async function readServerFile(env: Variables): Promise<{ value: ServerConfig } | { problems: string[] }> {
  const path = env.CONFIG_FILE || DEFAULT_FILE;
  const read = await readText(path, MAX_YAML_BYTES);
  if ("text" in read) return checkText(path, read.text, env);
  if (read.isMissing && !env.CONFIG_FILE) return { value: ServerConfig.parse({}) };
  return { problems: [`${env.CONFIG_FILE ? "environment: CONFIG_FILE: " : ""}\`${path}\` ${read.fault}`] };
}

function checkText(path: string, text: string, env: Variables) {
  const document = readYaml(path, text, env);
  const checked = document.check(FileContent);
  return "value" in checked ? checked : { problems: document.linesOf(checked.problems) };
}
