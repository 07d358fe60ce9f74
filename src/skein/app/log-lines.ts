// Formats log lines for people at a terminal.

import { type Paint, visible } from "../cli/paint.ts";

/** A line as written by pino. */
interface Line {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string };
}

/** The name and style for this level and above, highest first. */
const LEVELS = [
  { from: 50, name: "error", style: "red" },
  { from: 40, name: "warn", style: "yellow" },
  { from: 30, name: "info", style: "green" },
  { from: 0, name: "debug", style: "gray" },
] as const;

const [ERROR] = LEVELS;
/** The fields that are the same in all lines or shown elsewhere in the line. */
const LEFT_OUT = new Set(["level", "time", "pid", "hostname", "msg", "err"]);

/**
 * Returns `12:03:44 warn  message  key=value`, with a line break. An error's message follows on the next line, with a
 * stack trace if the error is the server's own.
 */
export function readableLine(json: string, paint: Paint): string {
  const line = JSON.parse(json) as Line;
  const { level, time, msg = "", err } = line;
  const { name, style } = LEVELS.find(({ from }) => level >= from) ?? ERROR;
  const fields = Object.entries(line)
    .filter(([key]) => !LEFT_OUT.has(key))
    .map(([key, value]) => paint("gray", `${key}=${shown(value)}`));
  const head = [clock(time), paint(style, name.padEnd(5)), visible(msg), ...fields].join(" ");
  const cause = level >= ERROR.from ? (err?.stack ?? err?.message) : err?.message;
  return cause === undefined ? `${head}\n` : `${head}\n${visible(cause).replace(/^/gm, "    ")}\n`;
}

/** Returns the time of day in this machine's time zone. */
const clock = (time: number) => new Date(time).toTimeString().slice(0, 8);

/** Single words are not quoted. */
const shown = (value: unknown) =>
  typeof value === "string" && /^\S+$/.test(value) ? value : JSON.stringify(value);
