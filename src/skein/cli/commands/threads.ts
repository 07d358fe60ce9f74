// `skein threads`: threads as files.

import { type Command, command, type Options } from "../command.ts";
import { environment, FILES, SERVER } from "./options.ts";

const OWNER = {
  user: { value: "NAME", about: (texts) => texts.options.user },
  tenant: { value: "NAME", about: (texts) => texts.options.tenant },
} as const satisfies Options;

export const THREADS: readonly Command[] = [
  command({
    name: "threads export",
    argument: "DIR",
    about: (texts) => texts.commands.threadsExport,
    options: { ...OWNER, ...SERVER, config: FILES.config, data: FILES.data },
    run: async (values, dir = "") =>
      (await import("../threads/command.ts")).exportTo(dir, values, environment(values)),
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
      (await import("../threads/command.ts")).importFrom(dir, values, environment(values)),
  }),
];
