// The commands of `skein`, with their options. What takes long to load is imported by the command that needs it.

import packageJson from "../../../package.json" with { type: "json" };
import type { ApiKeyStore } from "../../server/auth/api-keys.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import { type Command, command, type Values } from "./command.ts";
import { createKey, generateKey, type KeyLine, listKeys, revokeKey } from "./keys.ts";

/** Options that come before a variable of the environment. */
const FILES = {
  config: { value: "FILE", about: "file with the settings of the server [CONFIG_FILE, config/server.yaml]" },
  agents: { value: "FILE", about: "file with the agents [AGENTS_FILE, ./agents.yaml]" },
  data: { value: "DIR", about: "folder of the database and the workspaces [DATA_DIR, ./data]" },
} as const;
const LISTEN = {
  port: { value: "NUMBER", about: "port to listen on; 0 takes any free port [PORT, 8000]" },
  host: { value: "ADDRESS", about: "address to listen on [HOST, 127.0.0.1]" },
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
    about: "address of the running server; SKEIN_API_KEY is its key or token [http://127.0.0.1:8000]",
  },
} as const;
const AGENT = {
  agent: { value: "NAME", about: "agent to use; the default is the thread's agent or the first one" },
} as const;
const OWNER = {
  user: { value: "NAME", about: "user; not needed with AUTH=none" },
  tenant: { value: "NAME", about: "tenant of the user [default]" },
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
      model: { value: "MODEL", about: "model to use, such as anthropic:claude-sonnet-5" },
      thread: { value: "ID", about: "thread to continue; the default is a new thread" },
      json: { about: "print the events of the run as JSON, one per line" },
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
    about: "connect an editor to an agent of a running server, over stdio",
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
    about: "show the changes that another agents file would make",
    options: FILES,
    run: async (values, file = "") => (await import("./config.ts")).configDiff(file, environment(values)),
  }),
  command({
    name: "keys create",
    about: "create an API key",
    options: {
      user: { value: "NAME", about: "owner of the key; required", required: true },
      tenant: { value: "NAME", about: "tenant of the user [default]" },
      scopes: {
        value: "LIST",
        about: "scopes, separated by commas: read, run, tools, admin, operator [read,run]",
      },
      name: { value: "TEXT", about: "purpose of the key" },
      expires: { value: "WHEN", about: "expiry, such as 90d, 12h or 2031-01-31; the default is never" },
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
      tenant: { value: "NAME", about: "list only the keys of this tenant" },
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
    about: "check the store for contradictions, also while a server uses it",
    options: {
      json: { about: "print findings as JSON, one per line" },
      config: FILES.config,
      data: FILES.data,
    },
    run: async ({ json = false, ...values }) =>
      (await import("./store-check.ts")).storeCheck(environment(values), { json }),
  }),
  command({
    name: "restore",
    argument: "DIR",
    about: "replace the data by a backup; the server must not run",
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
    about: "create threads from an exported folder",
    options: {
      ...OWNER,
      resume: { about: "continue an interrupted import; skip threads that exist" },
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
