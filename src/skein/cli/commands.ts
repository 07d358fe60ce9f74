// The commands of `skein`, with their options. What takes long to load is imported by the command that needs it.

import packageJson from "../../../package.json" with { type: "json" };
import type { ApiKeyStore } from "../../server/auth/api-keys.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import { type Command, command, type Values } from "./command.ts";
import { createKey, generateKey, type KeyLine, listKeys, revokeKey } from "./keys.ts";

/** Options that come before a variable of the environment. */
const FILES = {
  config: { value: "FILE", about: "the server's settings [CONFIG_FILE, config/server.yaml]" },
  agents: { value: "FILE", about: "the agents [AGENTS_FILE, ./agents.yaml]" },
  data: { value: "DIR", about: "the folder of the database and the workspaces [DATA_DIR, ./data]" },
} as const;
const LISTEN = {
  port: { value: "NUMBER", about: "the port to listen on; 0 takes any free one [PORT, 8000]" },
  host: { value: "ADDRESS", about: "the address to listen on [HOST, 127.0.0.1]" },
} as const;

const WORKERS = {
  workers: { value: "NUMBER", about: "processes that share the port, with redis or postgres [WORKERS, 1]" },
} as const;

const VARIABLES = {
  config: "CONFIG_FILE",
  agents: "AGENTS_FILE",
  data: "DATA_DIR",
  port: "PORT",
  host: "HOST",
  workers: "WORKERS",
} as const;

/** The environment with the options in place of its variables. */
function environment(values: Values<typeof FILES & typeof LISTEN & typeof WORKERS>): NodeJS.ProcessEnv {
  const set = Object.entries(VARIABLES).flatMap(([option, name]) => {
    const value = values[option as keyof typeof VARIABLES];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...process.env, ...Object.fromEntries(set) };
}

const SERVER = {
  url: {
    value: "URL",
    about: "the running server [http://127.0.0.1:8000]; SKEIN_API_KEY is its key or token",
  },
} as const;
const AGENT = { agent: { value: "NAME", about: "the agent; by default the server's first" } } as const;
const OWNER = {
  user: { value: "NAME", about: "the user; not needed with AUTH=none" },
  tenant: { value: "NAME", about: "the user's tenant [default]" },
} as const;

export const COMMANDS: readonly Command[] = [
  command({
    name: "init",
    argument: "[DIR]",
    about: "write a project with an agent, a tool and a hook",
    options: {},
    run: async (_values, dir = ".") => {
      const { init } = await import("./init.ts");
      return show({ output: await init(dir) });
    },
  }),
  command({
    name: "serve",
    about: "serve the agents of agents.yaml",
    options: { ...LISTEN, ...WORKERS, ...FILES },
    run: async (values) => (await import("./serve/index.ts")).serve(environment(values)),
  }),
  command({
    name: "chat",
    argument: "[MESSAGE]",
    about: "talk to a running server, or send one message",
    options: {
      ...SERVER,
      ...AGENT,
      model: { value: "MODEL", about: "the model, as in anthropic:claude-sonnet-5" },
      thread: { value: "ID", about: "the thread to continue; by default a new one" },
      json: { about: "print the events of the message's run" },
    },
    run: async ({ url, thread, ...options }, message) =>
      (await import("./chat/index.ts")).chat({
        ...{ ...options, ...serverOf(url) },
        thread: thread || undefined,
        message,
      }),
  }),
  command({
    name: "acp",
    about: "an agent of a running server for an editor, over stdio",
    options: { ...SERVER, ...AGENT },
    run: async ({ url, agent }) =>
      (await import("../../wires/acp/index.ts")).acp({ ...serverOf(url), agent }),
  }),
  command({
    name: "config check",
    about: "validate the configuration and list every problem",
    options: FILES,
    run: async (values) => (await import("./config.ts")).configCheck(environment(values)),
  }),
  command({
    name: "config diff",
    argument: "FILE",
    about: "what another agents file would change",
    options: FILES,
    run: async (values, file = "") => (await import("./config.ts")).configDiff(file, environment(values)),
  }),
  command({
    name: "keys create",
    about: "create an API key",
    options: {
      user: { value: "NAME", about: "the user that the key belongs to; required", required: true },
      tenant: { value: "NAME", about: "the user's tenant [default]" },
      scopes: { value: "LIST", about: "of read, run, tools, admin and operator, with commas [read,run]" },
      name: { value: "TEXT", about: "what the key is for" },
      expires: { value: "WHEN", about: "as in 90d, 12h or 2031-01-31; by default never" },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => createKey(store, values)),
  }),
  command({
    name: "keys generate",
    about: "print a key for BOOTSTRAP_API_KEY, without storing it",
    options: {},
    run: async () => show(generateKey()),
  }),
  command({
    name: "keys list",
    about: "list keys; secrets are never shown",
    options: {
      tenant: { value: "NAME", about: "only those of this tenant" },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => listKeys(store, values)),
  }),
  command({
    name: "keys revoke",
    argument: "ID",
    about: "revoke a key",
    options: { config: FILES.config, data: FILES.data },
    run: (values, id = "") => keys(environment(values), (store) => revokeKey(store, id)),
  }),
  command({
    name: "backup",
    argument: "DIR",
    about: "back up the data of a running server",
    options: SERVER,
    run: async ({ url }, dir = "") =>
      show({ output: await (await import("./backup.ts")).backUpTo(dir, serverOf(url)) }),
  }),
  command({
    name: "store check",
    about: "read the store and report what contradicts itself; a server may use it meanwhile",
    options: {
      json: { about: "print findings as JSON, one a line" },
      config: FILES.config,
      data: FILES.data,
    },
    run: async ({ json = false, ...values }) =>
      (await import("./store-check.ts")).storeCheck(environment(values), { json }),
  }),
  command({
    name: "restore",
    argument: "DIR",
    about: "put a backup in the place of the data; the server must not run",
    options: { config: FILES.config, data: FILES.data },
    run: async (values, dir = "") =>
      show({ output: await (await import("./backup.ts")).restoreFrom(dir, environment(values)) }),
  }),
  command({
    name: "threads export",
    argument: "DIR",
    about: "write a user's threads to a folder",
    options: { ...OWNER, ...SERVER, config: FILES.config, data: FILES.data },
    run: async (values, dir = "") =>
      (await import("./threads/command.ts")).exportTo(dir, values, environment(values)),
  }),
  command({
    name: "threads import",
    argument: "DIR",
    about: "create threads from such a folder",
    options: {
      ...OWNER,
      resume: { about: "continue an interrupted import: leave threads that exist as they are" },
      ...{ config: FILES.config, data: FILES.data },
    },
    run: async (values, dir = "") =>
      (await import("./threads/command.ts")).importFrom(dir, values, environment(values)),
  }),
];

export const HEAD = `skein ${packageJson.version}: an agent server

Settings come from config/server.yaml, the environment and a file .env.
Documentation: ${packageJson.homepage}#documentation`;

/** The running server to talk to. */
const serverOf = (url: string | undefined) => ({
  url: url ?? `http://127.0.0.1:${process.env.PORT || 8000}`,
  key: process.env.SKEIN_API_KEY || undefined,
});

function show({ output, note }: KeyLine): number {
  if (note !== undefined) process.stderr.write(`${note}\n`);
  process.stdout.write(`${output}\n`);
  return 0;
}

/** Works on the configured store, also while a server uses it. */
async function keys(env: NodeJS.ProcessEnv, act: (store: ApiKeyStore) => Promise<KeyLine>): Promise<number> {
  const config = await loadServerConfig(env);
  const { openApiKeys } = await import("../app/stores.ts");
  const { keys: store, close } = await openApiKeys(config);
  try {
    return show(await act(store));
  } finally {
    close();
  }
}
