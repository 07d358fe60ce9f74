// The commands of `skein`, in the order of the help; `commands/` has those of each noun. Each command imports slow modules
// itself, so all other commands start quickly.

import packageJson from "../../../package.json" with { type: "json" };
import { type Command, command, type Options } from "./command.ts";
import { CONNECTIONS } from "./commands/connections.ts";
import { KEYS } from "./commands/keys.ts";
import { environment, FILES, LISTEN, SERVER, serverOf, show, WORKERS } from "./commands/options.ts";
import { SCHEDULES } from "./commands/schedules.ts";
import { THREADS } from "./commands/threads.ts";
import { TRIGGERS } from "./commands/triggers.ts";
import { WEBHOOKS } from "./commands/webhooks.ts";
import type { Texts } from "./texts/en.ts";

const AGENT = {
  agent: { value: "NAME", about: (texts) => texts.options.agent },
} as const satisfies Options;

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
  ...KEYS,
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
  ...THREADS,
  ...SCHEDULES,
  ...TRIGGERS,
  ...WEBHOOKS,
  ...CONNECTIONS,
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
      show({ output: await (await import("./audit.ts")).listTrail(serverOf(url), options) }),
  }),
];

/** The beginning of the help. */
export const head = (texts: Texts): string =>
  texts.help.head(packageJson.version, `${packageJson.homepage}#documentation`);
