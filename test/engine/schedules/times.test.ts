// When a schedule starts runs: the lines it reads, days on which clocks change, and slots that were missed.

import { expect, test } from "vitest";
import { checkCron, checkTimeZone, timesAfter } from "../../../src/engine/schedules/cron.ts";
import { checkTiming, dueSlot, slotsAfter } from "../../../src/engine/schedules/timing.ts";

const BERLIN = "Europe/Berlin";

/** The times on a day of a zone, in UTC. */
function timesOn(day: string, line: string, timezone = BERLIN): string[] {
  const [from, until] = [
    Date.parse(`${day}T00:00:00Z`) - 14 * 3_600_000,
    Date.parse(`${day}T23:59:59Z`) + 14 * 3_600_000,
  ];
  const local = new Intl.DateTimeFormat("sv", { timeZone: timezone, dateStyle: "short" });
  return timesAfter(line, timezone, from, 200)
    .filter((time) => time <= until && local.format(time) === day)
    .map((time) => new Date(time).toISOString().slice(11, 16));
}

test.each([
  [
    "30 2 * * *",
    "2026-03-29",
    ["01:00"],
    "a time that does not exist is started when the clocks have changed",
  ],
  ["*/15 2 * * *", "2026-03-29", [], "an hour that does not exist is left out"],
  ["30 2 * * *", "2026-10-25", ["00:30"], "a time that exists twice is started once, the first time"],
  ["30 2 * * *", "2026-10-26", ["01:30"], "the day after has the time of the winter"],
])("`%s` on %s: %j, as %4$s", (line, day, times) => {
  expect(timesOn(day, line)).toEqual(times);
});

test.each([
  ["0 * * * *", "2026-03-29", 23],
  ["0 * * * *", "2026-10-25", 25],
  ["*/30 * * * *", "2026-10-25", 50],
  ["0 * * * *", "2026-06-01", 24],
])("`%s` starts in each hour of %s: %i times", (line, day, count) => {
  expect(timesOn(day, line)).toHaveLength(count);
});

test.each([
  ["0 9 13 * FRI", ["2026-03-06", "2026-03-13", "2026-03-20"], "either of both days"],
  ["0 9 * * 5-7", ["2026-03-01", "2026-03-06", "2026-03-07"], "Sunday as 7"],
  ["0 9 1,15 jan-mar *", ["2026-03-01", "2026-03-15", "2027-01-01"], "names of months"],
  ["0 9 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"], "leap days"],
])("`%s` starts with %j: %2$s", (line, days) => {
  checkCron(line);
  const found = timesAfter(line, "UTC", Date.parse("2026-03-01T00:00:00Z"), 3);
  expect(found.map((time) => new Date(time).toISOString().slice(0, 10))).toEqual(days);
});

test.each([
  ["61 * * * *", "column 1: `61` is not a valid minute"],
  ["0 9 * * MON-FRY", "column 13: `FRY` is not a valid day of the week"],
  ["0 9,25 * * *", "column 5: `25` is not a valid hour"],
  ["0 0 L * *", "column 5: `L` is not a valid day of the month"],
  ["0 0 ? * *", "column 5: `?` is not a valid day of the month"],
  ["0 0 * * MON#2", "column 9: `MON#2` is not a valid day of the week"],
  ["5/10 * * * *", "write `5-59/10`"],
  ["*/0 * * * *", "the step of `*/0` must be a number from 1 to 59"],
  ["0 17-9 * * *", "`17-9` ends before it begins"],
  ["0,,5 * * * *", "column 3: `` is not a valid minute"],
  ["* * * * * *", "has 6 fields; 5 are needed"],
  ["@daily", "has 1 fields; 5 are needed"],
  ["１ * * * *", "is not a valid minute"],
  ["0 0 1 ".padEnd(300, "1"), "at most 256"],
])("the line `%s` is refused: %s", (line, why) => {
  expect(() => checkCron(line)).toThrow(why);
});

test("a line that matches no day is refused", () => {
  expect(() => checkTiming({ cron: "0 0 31 2 *", timezone: "UTC" })).toThrow("matches no day");
});

test.each([
  ["Europe/Berln", "Did you mean `Europe/Berlin`?"],
  ["+02:00", "is not an IANA time zone"],
  ["Mars/Olympus", "is not an IANA time zone"],
])("the zone %s is refused: %s", (zone, why) => {
  expect(() => checkTimeZone(zone)).toThrow(why);
});

const at = (text: string) => Date.parse(`2026-05-04T${text}Z`);
const hourly = { cron: "0 * * * *", timezone: "UTC" };

test("missed slots are skipped, started as one, or started individually", () => {
  const due = { next: at("01:00:00"), now: at("05:30:00"), isRetried: false };
  expect(dueSlot(hourly, "none", due)).toEqual({ done: at("05:00:00") });
  expect(dueSlot(hourly, "latest", due)).toEqual({ start: at("05:00:00"), done: at("05:00:00") });
  expect(dueSlot(hourly, "all", due)).toEqual({ start: at("01:00:00"), done: at("01:00:00") });
});

test("a slot that is less than a minute late does not count as missed, nor does one that is retried", () => {
  const next = at("01:00:00");
  const started = { start: next, done: next };
  expect(dueSlot(hourly, "none", { next, now: at("01:00:59"), isRetried: false })).toEqual(started);
  expect(dueSlot(hourly, "none", { next, now: at("01:01:01"), isRetried: false })).toEqual({ done: next });
  expect(dueSlot(hourly, "none", { next, now: at("03:00:00"), isRetried: true })).toEqual(started);
});

test("no slot is after `until`", () => {
  const timing = { ...hourly, until: "2026-05-04T02:00:00Z" };
  expect(slotsAfter(timing, at("00:30:00"), 5)).toEqual([at("01:00:00"), at("02:00:00")]);
  const late = { next: at("01:00:00"), now: at("05:30:00"), isRetried: false };
  expect(dueSlot(timing, "latest", late)).toEqual({ start: at("02:00:00"), done: at("02:00:00") });
});

test("a single run has one slot", () => {
  const once = { at: "2026-05-04T12:00:00+02:00", timezone: "UTC" };
  expect(slotsAfter(once, at("09:00:00"), 5)).toEqual([at("10:00:00")]);
  expect(slotsAfter(once, at("10:00:00"), 5)).toEqual([]);
});
