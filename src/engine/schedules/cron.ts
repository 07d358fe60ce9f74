// Cron lines with five fields, names and IANA time zones, the same format that hosted agent services use. `croner`
// computes the times. Its extensions, such as seconds, `L`, `#` and `@daily`, are refused with an error that names the
// column.

import { Cron } from "croner";
import { AppError } from "../../agent/core/errors.ts";
import { closestMatch } from "../../lib/did-you-mean.ts";

interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: ReadonlyMap<string, number>;
}

const numbered = (names: string, first: number) =>
  new Map(names.split(" ").map((name, at) => [name, first + at]));
const MONTHS = numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1);
const WEEKDAYS = numbered("SUN MON TUE WED THU FRI SAT", 0);
const FIELDS: readonly CronField[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of the month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, names: MONTHS },
  // Both 0 and 7 are Sunday.
  { name: "day of the week", min: 0, max: 7, names: WEEKDAYS },
];
const MAX_CHARS = 256;
const SHAPE = "minute hour day-of-month month day-of-week, such as `0 9 * * MON-FRI`";

/** Throws `invalid_request` with the column, counted from 1, at which the line is invalid. */
export function checkCron(line: string): void {
  if (line.length > MAX_CHARS)
    throw invalid(`it has ${line.length} characters; at most ${MAX_CHARS} are allowed`);
  const fields = [...line.matchAll(/\S+/g)];
  if (fields.length !== FIELDS.length)
    throw invalid(`\`${line}\` has ${fields.length} fields; 5 are needed: ${SHAPE}`);
  for (const [at, { 0: text, index }] of fields.entries())
    checkField(FIELDS[at] as CronField, text, index + 1);
}

function checkField(field: CronField, text: string, column: number): void {
  let start = column;
  for (const item of text.split(",")) {
    checkItem(field, item, start);
    start += item.length + 1;
  }
}

/** `*`, `5` or `1-5`. `*` and `1-5` can have a step. */
const ITEM = /^(?:(\*)|([^-/*]+)(?:-([^-/*]+))?)(?:\/([^/]*))?$/;

function checkItem(field: CronField, item: string, column: number): void {
  const [, star, first, last, step] = ITEM.exec(item) ?? [];
  if (star === undefined && first === undefined)
    throw invalid(`column ${column}: \`${item}\` is not a valid ${field.name}: write ${formsOf(field)}`);
  const from = first === undefined ? field.min : numberOf(field, first, column);
  const to = last === undefined ? from : numberOf(field, last, column + (first?.length ?? 0) + 1);
  if (to < from) throw invalid(`column ${column}: \`${item}\` ends before it begins`);
  if (step === undefined) return;
  if (first !== undefined && last === undefined)
    throw invalid(
      `column ${column}: \`${item}\` needs a range before \`/\`: write \`${first}-${field.max}/${step}\``,
    );
  if (!/^\d{1,2}$/.test(step) || Number(step) < 1 || Number(step) > field.max)
    throw invalid(`column ${column}: the step of \`${item}\` must be a number from 1 to ${field.max}`);
}

const formsOf = ({ min, max, names }: CronField) =>
  `a number from ${min} to ${max}${names ? ` or a name such as ${names.keys().next().value}` : ""}, \`*\`, a range \`a-b\`, a step \`*/n\`, or a list of these with commas`;

function numberOf({ name, min, max, names }: CronField, text: string, column: number): number {
  const named = names?.get(text.toUpperCase());
  if (named !== undefined) return named;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  const orName = names ? ` or one of ${[...names.keys()].join(" ")}` : "";
  throw invalid(
    `column ${column}: \`${text}\` is not a valid ${name}; it must be a number from ${min} to ${max}${orName}`,
  );
}

/**
 * Throws `invalid_request` for a zone that is not in the IANA database. Offsets such as `+02:00` are refused because
 * they have no daylight saving time.
 */
export function checkTimeZone(timezone: string): void {
  try {
    if (/^[A-Za-z]/.test(timezone) && timezone.length <= MAX_CHARS) {
      new Intl.DateTimeFormat("en", { timeZone: timezone });
      return;
    }
  } catch {
    // The error below has more detail.
  }
  const meant = closestMatch(timezone, Intl.supportedValuesOf("timeZone"));
  const hint = meant ? `Did you mean \`${meant}\`?` : "Use a name such as `Europe/Berlin` or `UTC`.";
  throw new AppError(
    "invalid_request",
    `timezone: \`${timezone.slice(0, MAX_CHARS)}\` is not an IANA time zone. ${hint}`,
  );
}

/**
 * Returns the most recent time, at or before `until`, that matches a valid cron line. Returns undefined if no time
 * matches.
 */
export function timeBefore(line: string, timezone: string, until: number): number | undefined {
  return cronOf(line, timezone)
    .previousRuns(1, new Date(until + 1))[0]
    ?.getTime();
}

/**
 * Returns the first `count` times after `after` that match a valid cron line, oldest first. All times are in
 * milliseconds since 1970.
 */
export function timesAfter(line: string, timezone: string, after: number, count: number): number[] {
  return cronOf(line, timezone)
    .nextRuns(count, new Date(after))
    .map((time) => time.getTime());
}

const cronOf = (line: string, timezone: string) => new Cron(line, { timezone, mode: "5-part", paused: true });

const invalid = (why: string) => new AppError("invalid_request", `cron: ${why}.`);
