// The options that several commands share, and how commands use them and show their results.

import type { Options, OptionValues } from "../command.ts";
import type { KeyLine } from "../keys.ts";

/** The options that override an environment variable. */
export const FILES = {
  config: { value: "FILE", about: (texts) => texts.options.config },
  agents: { value: "FILE", about: (texts) => texts.options.agents },
  data: { value: "DIR", about: (texts) => texts.options.data },
} as const satisfies Options;
export const LISTEN = {
  port: { value: "NUMBER", about: (texts) => texts.options.port },
  host: { value: "ADDRESS", about: (texts) => texts.options.host },
} as const satisfies Options;
export const WORKERS = {
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
export function environment(
  values: OptionValues<typeof FILES & typeof LISTEN & typeof WORKERS>,
): NodeJS.ProcessEnv {
  const set = Object.entries(VARIABLES).flatMap(([option, name]) => {
    const value = values[option as keyof typeof VARIABLES];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...process.env, ...Object.fromEntries(set) };
}

export const SERVER = {
  url: {
    value: "URL",
    about: (texts) => texts.options.url,
  },
} as const satisfies Options;

/** The running server to connect to. */
export const serverOf = (url: string | undefined) => ({
  url: url ?? `http://127.0.0.1:${process.env.PORT || 8000}`,
  key: process.env.SKEIN_API_KEY || undefined,
});

/** Prints a command's result. Returns its exit code. */
export function show({ output, note }: KeyLine): number {
  if (note !== undefined) process.stderr.write(`${note}\n`);
  process.stdout.write(`${output}\n`);
  return 0;
}
