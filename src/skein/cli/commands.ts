// The commands of `skein` and their options. Each command imports slow modules itself, so all other commands start
// quickly.

import packageJson from "../../../package.json" with { type: "json" };
import type { ApiKeyStore } from "../../server/auth/api-keys.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import { type Command, command, type Options, type Values } from "./command.ts";
import { createKey, generateKey, type KeyLine, listKeys, revokeKey } from "./keys.ts";
import type { Texts } from "./texts/en.ts";

/** The options that override an environment variable. */
const FILES = {
  config: { value: "FILE", about: (texts) => texts.options.config },
  agents: { value: "FILE", about: (texts) => texts.options.agents },
  data: { value: "DIR", about: (texts) => texts.options.data },
} as const satisfies Options;
const LISTEN = {
  port: { value: "NUMBER", about: (texts) => texts.options.port },
  host: { value: "ADDRESS", about: (texts) => texts.options.host },
} as const satisfies Options;

const WORKERS = {
  workers: { value: "NUMBER", about: (texts) => texts.options.workers },
} as const satisfies Options;

const VARIABLES = {
  config: "CONFIG_FILE",
  agents: "AGENTS_FILE",
  data: "DATA_DIR",
  port: "PORT",
  host: "HOST",
  workers: "WORKERS",
} as const;

/** Returns the environment with the options applied. */
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
    about: (texts) => texts.options.url,
  },
} as const satisfies Options;
const AGENT = {
  agent: { value: "NAME", about: (texts) => texts.options.agent },
} as const satisfies Options;
const OWNER = {
  user: { value: "NAME", about: (texts) => texts.options.user },
  tenant: { value: "NAME", about: (texts) => texts.options.tenant },
} as const satisfies Options;

const TIMES = {
  cron: { value: "LINE", about: (texts) => texts.options.scheduleCron },
  at: { value: "TIME", about: (texts) => texts.options.scheduleAt },
  timezone: { value: "ZONE", about: (texts) => texts.options.scheduleZone },
  until: { value: "TIME", about: (texts) => texts.options.scheduleUntil },
} as const satisfies Options;
const SECRET = {
  secret: { value: "FILE", about: (texts) => texts.options.triggerSecret },
} as const satisfies Options;

const schedules = () => import("./schedules.ts");
const triggers = () => import("./triggers.ts");
const webhooks = () => import("./webhooks.ts");
const connections = () => import("./connections.ts");
const audit = () => import("./audit.ts");

export const COMMANDS: readonly Command[] = [
  command({
    name: "init",
    argument: "[DIR]",
    about: (texts) => texts.commands.init,
    options: {},
    run: async (_values, dir = ".") => {
      const { init } = await import("./init.ts");
      return show({ output: await init(dir) });
    },
  }),
  command({
    name: "serve",
    about: (texts) => texts.commands.serve,
    options: { ...LISTEN, ...WORKERS, ...FILES },
    run: async (values) => (await import("./serve/index.ts")).serve(environment(values)),
  }),
  command({
    name: "chat",
    argument: "[MESSAGE]",
    about: (texts) => texts.commands.chat,
    options: {
      ...SERVER,
      ...AGENT,
      model: { value: "MODEL", about: (texts) => texts.options.model },
      thread: { value: "ID", about: (texts) => texts.options.thread },
      json: { about: (texts) => texts.options.eventsAsJson },
      temporary: { about: (texts) => texts.options.temporary },
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
    about: (texts) => texts.commands.acp,
    options: { ...SERVER, ...AGENT },
    run: async ({ url, agent }) =>
      (await import("../../wires/acp/index.ts")).acp({ ...serverOf(url), agent }),
  }),
  command({
    name: "config check",
    about: (texts) => texts.commands.configCheck,
    options: FILES,
    run: async (values) => (await import("./config.ts")).configCheck(environment(values)),
  }),
  command({
    name: "config diff",
    argument: "FILE",
    about: (texts) => texts.commands.configDiff,
    options: FILES,
    run: async (values, file = "") => (await import("./config.ts")).configDiff(file, environment(values)),
  }),
  command({
    name: "keys create",
    about: (texts) => texts.commands.keysCreate,
    options: {
      user: { value: "NAME", about: (texts) => texts.options.keyUser, required: true },
      tenant: { value: "NAME", about: (texts) => texts.options.tenant },
      scopes: {
        value: "LIST",
        about: (texts) => texts.options.scopes,
      },
      name: { value: "TEXT", about: (texts) => texts.options.keyName },
      expires: { value: "WHEN", about: (texts) => texts.options.expires },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => createKey(store, values)),
  }),
  command({
    name: "keys generate",
    about: (texts) => texts.commands.keysGenerate,
    options: {},
    run: async () => show(generateKey()),
  }),
  command({
    name: "keys list",
    about: (texts) => texts.commands.keysList,
    options: {
      tenant: { value: "NAME", about: (texts) => texts.options.keysOfTenant },
      config: FILES.config,
      data: FILES.data,
    },
    run: (values) => keys(environment(values), (store) => listKeys(store, values)),
  }),
  command({
    name: "keys revoke",
    argument: "ID",
    about: (texts) => texts.commands.keysRevoke,
    options: { config: FILES.config, data: FILES.data },
    run: (values, id = "") => keys(environment(values), (store) => revokeKey(store, id)),
  }),
  command({
    name: "backup",
    argument: "DIR",
    about: (texts) => texts.commands.backup,
    options: SERVER,
    run: async ({ url }, dir = "") =>
      show({ output: await (await import("./backup.ts")).backUpTo(dir, serverOf(url)) }),
  }),
  command({
    name: "store check",
    about: (texts) => texts.commands.storeCheck,
    options: {
      json: { about: (texts) => texts.options.findingsAsJson },
      config: FILES.config,
      data: FILES.data,
    },
    run: async ({ json = false, ...values }) =>
      (await import("./store-check.ts")).storeCheck(environment(values), { json }),
  }),
  command({
    name: "restore",
    argument: "DIR",
    about: (texts) => texts.commands.restore,
    options: { config: FILES.config, data: FILES.data },
    run: async (values, dir = "") =>
      show({ output: await (await import("./backup.ts")).restoreFrom(dir, environment(values)) }),
  }),
  command({
    name: "threads export",
    argument: "DIR",
    about: (texts) => texts.commands.threadsExport,
    options: { ...OWNER, ...SERVER, config: FILES.config, data: FILES.data },
    run: async (values, dir = "") =>
      (await import("./threads/command.ts")).exportTo(dir, values, environment(values)),
  }),
  command({
    name: "threads import",
    argument: "DIR",
    about: (texts) => texts.commands.threadsImport,
    options: {
      ...OWNER,
      resume: { about: (texts) => texts.options.resume },
      ...{ config: FILES.config, data: FILES.data },
    },
    run: async (values, dir = "") =>
      (await import("./threads/command.ts")).importFrom(dir, values, environment(values)),
  }),
  command({
    name: "schedules list",
    about: (texts) => texts.commands.schedulesList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await schedules()).listSchedules(serverOf(url)) }),
  }),
  command({
    name: "schedules put",
    argument: "ID",
    about: (texts) => texts.commands.schedulesPut,
    options: {
      input: { value: "TEXT", about: (texts) => texts.options.scheduleInput, required: true },
      ...TIMES,
      agent: { value: "NAME", about: (texts) => texts.options.scheduleAgent },
      thread: { value: "ID", about: (texts) => texts.options.scheduleThread },
      overlap: { value: "ACTION", about: (texts) => texts.options.scheduleOverlap },
      missed: { value: "ACTION", about: (texts) => texts.options.scheduleCatchUp },
      questions: { value: "ACTION", about: (texts) => texts.options.scheduleQuestions },
      paused: { about: (texts) => texts.options.schedulePaused },
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") =>
      show(await (await schedules()).putSchedule(serverOf(url), id, options)),
  }),
  command({
    name: "schedules preview",
    about: (texts) => texts.commands.schedulesPreview,
    options: { ...TIMES, ...SERVER },
    run: async ({ url, ...times }) =>
      show({ output: await (await schedules()).previewSchedule(serverOf(url), times) }),
  }),
  command({
    name: "schedules run",
    argument: "ID",
    about: (texts) => texts.commands.schedulesRun,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await schedules()).runSchedule(serverOf(url), id)),
  }),
  command({
    name: "schedules pause",
    argument: "ID",
    about: (texts) => texts.commands.schedulesPause,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await schedules()).pauseSchedule(serverOf(url), id, true) }),
  }),
  command({
    name: "schedules continue",
    argument: "ID",
    about: (texts) => texts.commands.schedulesContinue,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await schedules()).pauseSchedule(serverOf(url), id, false) }),
  }),
  command({
    name: "schedules delete",
    argument: "ID",
    about: (texts) => texts.commands.schedulesDelete,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await schedules()).deleteSchedule(serverOf(url), id) }),
  }),
  command({
    name: "triggers list",
    about: (texts) => texts.commands.triggersList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await triggers()).listTriggers(serverOf(url)) }),
  }),
  command({
    name: "triggers put",
    argument: "ID",
    about: (texts) => texts.commands.triggersPut,
    options: {
      agent: { value: "NAME", about: (texts) => texts.options.triggerAgent, required: true },
      scheme: { value: "SCHEME", about: (texts) => texts.options.triggerScheme, required: true },
      input: { value: "TEMPLATE", about: (texts) => texts.options.triggerInput, required: true },
      thread: { value: "TEMPLATE", about: (texts) => texts.options.triggerThread },
      header: { value: "NAME", about: (texts) => texts.options.triggerHeader },
      prefix: { value: "TEXT", about: (texts) => texts.options.triggerPrefix },
      paused: { about: (texts) => texts.options.triggerPaused },
      ...SECRET,
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") =>
      show(await (await triggers()).putTrigger(serverOf(url), id, options)),
  }),
  command({
    name: "triggers rotate",
    argument: "ID",
    about: (texts) => texts.commands.triggersRotate,
    options: { ...SECRET, ...SERVER },
    run: async ({ url, ...options }, id = "") =>
      show(await (await triggers()).rotateTrigger(serverOf(url), id, options)),
  }),
  command({
    name: "triggers test",
    argument: "ID",
    about: (texts) => texts.commands.triggersTest,
    options: {
      body: { value: "FILE", about: (texts) => texts.options.triggerBody, required: true },
      ...SERVER,
    },
    run: async ({ url, body = "" }, id = "") =>
      show({ output: await (await triggers()).testTrigger(serverOf(url), id, body) }),
  }),
  command({
    name: "triggers deliveries",
    argument: "ID",
    about: (texts) => texts.commands.triggersDeliveries,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await triggers()).listTriggerDeliveries(serverOf(url), id) }),
  }),
  command({
    name: "triggers delete",
    argument: "ID",
    about: (texts) => texts.commands.triggersDelete,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await triggers()).deleteTrigger(serverOf(url), id) }),
  }),
  command({
    name: "webhooks list",
    about: (texts) => texts.commands.webhooksList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await webhooks()).listWebhooks(serverOf(url)) }),
  }),
  command({
    name: "webhooks put",
    argument: "ID",
    about: (texts) => texts.commands.webhooksPut,
    options: {
      address: { value: "URL", about: (texts) => texts.options.webhookAddress, required: true },
      on: { value: "LIST", about: (texts) => texts.options.webhookOn },
      only: { value: "LIST", about: (texts) => texts.options.webhookOnly },
      ordered: { about: (texts) => texts.options.webhookOrdered },
      paused: { about: (texts) => texts.options.webhookPaused },
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") =>
      show(await (await webhooks()).putWebhook(serverOf(url), id, options)),
  }),
  command({
    name: "webhooks rotate",
    argument: "ID",
    about: (texts) => texts.commands.webhooksRotate,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await webhooks()).rotateWebhook(serverOf(url), id)),
  }),
  command({
    name: "webhooks test",
    argument: "ID",
    about: (texts) => texts.commands.webhooksTest,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await webhooks()).testWebhook(serverOf(url), id) }),
  }),
  command({
    name: "webhooks deliveries",
    argument: "ID",
    about: (texts) => texts.commands.webhooksDeliveries,
    options: { status: { value: "STATUS", about: (texts) => texts.options.webhookStatus }, ...SERVER },
    run: async ({ url, status }, id = "") =>
      show({ output: await (await webhooks()).listDeliveries(serverOf(url), id, status) }),
  }),
  command({
    name: "webhooks send",
    argument: "ID",
    about: (texts) => texts.commands.webhooksSend,
    options: {
      delivery: { value: "ID", about: (texts) => texts.options.webhookDelivery, required: true },
      ...SERVER,
    },
    run: async ({ url, delivery = "" }, id = "") =>
      show({ output: await (await webhooks()).sendDelivery(serverOf(url), id, delivery) }),
  }),
  command({
    name: "webhooks delete",
    argument: "ID",
    about: (texts) => texts.commands.webhooksDelete,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await webhooks()).deleteWebhook(serverOf(url), id) }),
  }),
  command({
    name: "connections list",
    about: (texts) => texts.commands.connectionsList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await connections()).listConnections(serverOf(url)) }),
  }),
  command({
    name: "connections put",
    argument: "ID",
    about: (texts) => texts.commands.connectionsPut,
    options: {
      address: { value: "URL", about: (texts) => texts.options.connectionAddress },
      variable: { value: "NAME", about: (texts) => texts.options.connectionVariable },
      hosts: { value: "LIST", about: (texts) => texts.options.connectionHosts },
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") => {
      const piped = await (await import("./piped-text.ts")).pipedText();
      return show({ output: await (await connections()).putConnection(serverOf(url), id, options, piped) });
    },
  }),
  command({
    name: "connections sign-in",
    argument: "ID",
    about: (texts) => texts.commands.connectionsSignIn,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await connections()).authorizeConnection(serverOf(url), id)),
  }),
  command({
    name: "connections delete",
    argument: "ID",
    about: (texts) => texts.commands.connectionsDelete,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await connections()).deleteConnection(serverOf(url), id)),
  }),
  command({
    name: "audit",
    about: (texts) => texts.commands.audit,
    options: {
      user: { value: "USER", about: (texts) => texts.options.auditUser },
      action: { value: "ACTION", about: (texts) => texts.options.auditAction },
      since: { value: "TIME", about: (texts) => texts.options.auditSince },
      tenant: { value: "TENANT", about: (texts) => texts.options.auditTenant },
      ...SERVER,
    },
    run: async ({ url, ...options }) =>
      show({ output: await (await audit()).listTrail(serverOf(url), options) }),
  }),
];

/** The beginning of the help. */
export const head = (texts: Texts): string =>
  texts.help.head(packageJson.version, `${packageJson.homepage}#documentation`);

/** The running server to connect to. */
const serverOf = (url: string | undefined) => ({
  url: url ?? `http://127.0.0.1:${process.env.PORT || 8000}`,
  key: process.env.SKEIN_API_KEY || undefined,
});

function show({ output, note }: KeyLine): number {
  if (note !== undefined) process.stderr.write(`${note}\n`);
  process.stdout.write(`${output}\n`);
  return 0;
}

/** Opens the configured store, even while a server is using it, and prints the result of `act`. */
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
