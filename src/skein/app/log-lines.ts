// Lines of the log as a person at a terminal reads them.

import { type Paint, visible } from "../cli/paint.ts";

/** A line as pino writes it. */
interface Line {
  readonly level: number;
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string };
}

/** From this level on, with its name and style. The highest first. */
const LEVELS = [
  { from: 50, name: "error", style: "red" },
  { from: 40, name: "warn", style: "yellow" },
  { from: 30, name: "info", style: "green" },
  { from: 0, name: "debug", style: "gray" },
] as const;

const [ERROR] = LEVELS;
/** The same in all lines. */
const LEFT_OUT = new Set(["level", "time", "pid", "hostname", "msg", "err"]);

/** `12:03:44 warn  message  key=value`, and below it what an error says: its stack if it is the server's own. Ends with a line break. */
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

/** Of this machine's time zone. */
const clock = (time: number) => new Date(time).toTimeString().slice(0, 8);

/** Texts of one word stand without quotes. */
const shown = (value: unknown) =>
  typeof value === "string" && /^\S+$/.test(value) ? value : JSON.stringify(value);
