#!/usr/bin/env node
// The process: command line, environment, signals and exit codes.

import { parseArgs } from "node:util";
import { pino } from "pino";
import packageJson from "../package.json" with { type: "json" };
import { loadAgents } from "./agents/load.ts";
import { catalogueOf, createApp, openApiKeys, openStores } from "./app.ts";
import { chat } from "./cli/chat.ts";
import { type Answer, createKey, listKeys, revokeKey } from "./cli/keys.ts";
import { visible } from "./cli/render.ts";
import { exportThreads, remoteThreads } from "./cli/threads/export.ts";
import { importThreads } from "./cli/threads/import.ts";
import { checkConfig } from "./config/check.ts";
import { loadServerConfig } from "./config/load.ts";
import { AppError, messageOf } from "./core/errors.ts";
import type { Owner } from "./core/ids.ts";
import type { ThreadStore } from "./core/stores.ts";
import type { ApiKeyStore } from "./http/auth/api-keys.ts";
import type { AuthConfig } from "./http/auth/config.ts";

const USAGE = `skein ${packageJson.version}: an agent server

  skein serve            serve the agents of agents.yaml
  skein chat             talk to a running server (--url, --agent, --thread; SKEIN_API_KEY)
  skein config check     validate the configuration and list every problem
  skein keys create      create an API key (--user, --tenant, --scopes read,run,tools,admin, --name, --expires 90d)
  skein keys list        list keys (--tenant); secrets are never shown
  skein keys revoke ID   revoke a key
  skein threads export DIR    write a user's threads to a folder (--user, --tenant; or --url of a running server)
  skein threads import DIR    create threads from such a folder (--user, --tenant)
  skein --version

Settings come from config/server.yaml and the environment: HOST PORT DATA_DIR AGENTS_FILE CONFIG_FILE STORE
LOG_LEVEL, and provider variables (ANTHROPIC_API_KEY, OPENAI_API_KEY, …_BASE_URL).
`;

async function main(): Promise<number> {
  const { values, positionals } = commandLine();
  if (values.version) return say(packageJson.version);
  if (values.help) return say(USAGE);
  const [group, command, id] = positionals;
  if (group === "keys" && positionals.length <= 3) {
    if (command === "create" && id === undefined) return keys((store) => createKey(store, values));
    if (command === "list" && id === undefined) return keys((store) => listKeys(store, values));
    if (command === "revoke") return keys((store) => revokeKey(store, id));
  }
  if (group === "threads" && id !== undefined && positionals.length === 3) {
    if (command === "export" && values.url !== undefined) return exportFrom(values.url, values, id);
    if (command === "export") return threads(values, (store, owner) => exportThreads(store, owner, id));
    if (command === "import" && values.url === undefined)
      return threads(values, (store, owner) => importThreads(store, owner, id));
  }
  switch (positionals.join(" ")) {
    case "serve":
      return serve();
    case "chat": {
      const { url = `http://127.0.0.1:${process.env.PORT || 8000}`, agent, thread } = values;
      const key = process.env.SKEIN_API_KEY;
      return chat({ url, agent, thread: thread || undefined, key: key || undefined });
    }
    case "config check":
      return configCheck(process.env);
    default:
      if (positionals.length > 0) process.stderr.write(`Unknown command \`${positionals.join(" ")}\`.\n\n`);
      process.stderr.write(USAGE);
      return 2;
  }
}

/** Throws `invalid_request` for an unknown option. */
function commandLine() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
        url: { type: "string" },
        agent: { type: "string" },
        thread: { type: "string" },
        tenant: { type: "string" },
        user: { type: "string" },
        scopes: { type: "string" },
        name: { type: "string" },
        expires: { type: "string" },
      },
    });
  } catch (error) {
    throw new AppError("invalid_request", `${messageOf(error).split(". ")[0]}.\n\n${USAGE}`, {
      cause: error,
    });
  }
}

/** Prints every problem and warning of the configuration. */
async function configCheck(env: NodeJS.ProcessEnv): Promise<number> {
  const catalogue = catalogueOf(env);
  const { problems, warnings, summary } = await checkConfig(env, (file) =>
    loadAgents({ file, catalogue, env }),
  );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  for (const warning of warnings) process.stdout.write(`warning: ${warning}\n`);
  process.stdout.write(`${summary}\n`);
  return problems.length > 0 ? 1 : 0;
}

/** Works on the configured store, also while a server uses it. */
async function keys(command: (store: ApiKeyStore) => Promise<Answer>): Promise<number> {
  const { keys: store, close } = await openApiKeys(await loadServerConfig(process.env));
  try {
    const { output, note } = await command(store);
    if (note !== undefined) process.stderr.write(`${note}\n`);
    return say(output);
  } finally {
    close();
  }
}

/** Reads from a running server, with any store. */
async function exportFrom(url: string, whose: Whose, dir: string): Promise<number> {
  if (whose.user !== undefined || whose.tenant !== undefined)
    throw new AppError(
      "invalid_request",
      "With --url the owner comes from SKEIN_API_KEY; omit --user and --tenant.",
    );
  const key = process.env.SKEIN_API_KEY;
  // The server knows the owner by the key.
  const owner = { tenant: "", user: "" };
  return say(await exportThreads(remoteThreads({ url, key }), owner, dir));
}

interface Whose {
  readonly tenant?: string | undefined;
  readonly user?: string | undefined;
}

/** Works on the configured store. A SQLite store must not be in use by a server. */
async function threads(
  whose: Whose,
  command: (store: ThreadStore, owner: Owner) => Promise<string>,
): Promise<number> {
  const config = await loadServerConfig(process.env);
  // Without authentication there is only one owner.
  const { tenant = "default", user = config.auth.scheme === "none" ? "default" : undefined } = whose;
  if (user === undefined)
    throw new AppError("invalid_request", "Specify the owner with --user and --tenant.");
  const stores = await openStores(config);
  try {
    if (!stores.isDurable)
      throw new AppError(
        "invalid_request",
        "STORE=memory does not persist threads. Use STORE=sqlite or STORE=redis.",
      );
    return say(await command(stores.threads, { tenant, user }));
  } finally {
    await stores.close();
  }
}

/** Resolves when the server was asked to stop and has stopped. */
async function serve(): Promise<number> {
  const config = await loadServerConfig(process.env);
  const logger = pino({ level: config.log_level }, pino.destination({ dest: 2, sync: false }));
  const app = await createApp({ config, env: process.env, logger });
  const stopped = signal();
  // In a terminal, SIGHUP means that the terminal was closed.
  if (!process.stdout.isTTY) process.on("SIGHUP", () => void app.reload());
  const address = await app.listen().catch(async (error: unknown) => {
    await app.close();
    throw error;
  });
  process.stdout.write(`
Skein ${packageJson.version} serves on ${address} (${config.store}, ${config.agents_file}). Try it:

${BEFORE[config.auth.scheme] ?? ""}  curl -N ${address}/threads/demo/runs${WHO[config.auth.scheme]} -H 'content-type: application/json' -d '{"input": "Hello, what can you do?"}'

`);
  const name = await stopped;
  logger.info({ signal: name }, "shutting down");
  // A second signal ends the process at once; so does a shutdown that hangs.
  for (const again of SIGNALS) process.once(again, () => process.exit(1));
  setTimeout(() => process.exit(1), config.shutdown.grace + 10_000).unref();
  await app.close();
  return 0;
}

/** The credentials of the example request. */
const WHO: Readonly<Record<AuthConfig["scheme"], string>> = {
  none: "",
  api_key: ' -H "authorization: Bearer $SKEIN_API_KEY"',
  jwt: ' -H "authorization: Bearer $TOKEN"',
  header: " -H 'x-skein-tenant: acme' -H 'x-skein-user: ada' -H 'x-skein-scopes: read,run'",
};

/** Commands to run before the example request. JWTs come from the identity provider. */
const BEFORE: Partial<Record<AuthConfig["scheme"], string>> = {
  api_key: "  export SKEIN_API_KEY=$(npm exec -- skein keys create --user ada)\n",
};

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

function signal(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of SIGNALS) process.once(name, () => resolve(name));
  });
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`skein: ${visible(error instanceof AppError ? error.message : String(error))}\n`);
  process.exitCode = error instanceof AppError && error.code === "invalid_request" ? 2 : 1;
}
