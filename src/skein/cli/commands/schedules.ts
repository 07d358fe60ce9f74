// `skein schedules`: the schedules of the user of a running server.

import type { Command, Options } from "../command.ts";
import { commandsOf } from "./noun.ts";

const schedules = commandsOf("schedules", () => import("../schedules.ts"));

const TIMES = {
  cron: { value: "LINE", about: (texts) => texts.options.scheduleCron },
  at: { value: "TIME", about: (texts) => texts.options.scheduleAt },
  timezone: { value: "ZONE", about: (texts) => texts.options.scheduleZone },
  until: { value: "TIME", about: (texts) => texts.options.scheduleUntil },
} as const satisfies Options;

export const SCHEDULES: readonly Command[] = [
  schedules.all("list", "schedulesList", {}, (on) => on.listSchedules),
  schedules.one(
    "put",
    "schedulesPut",
    {
      input: { value: "TEXT", about: (texts) => texts.options.scheduleInput, required: true },
      ...TIMES,
      agent: { value: "NAME", about: (texts) => texts.options.scheduleAgent },
      thread: { value: "ID", about: (texts) => texts.options.scheduleThread },
      overlap: { value: "ACTION", about: (texts) => texts.options.scheduleOverlap },
      missed: { value: "ACTION", about: (texts) => texts.options.scheduleCatchUp },
      questions: { value: "ACTION", about: (texts) => texts.options.scheduleQuestions },
      paused: { about: (texts) => texts.options.schedulePaused },
    },
    (on) => on.putSchedule,
  ),
  schedules.all("preview", "schedulesPreview", TIMES, (on) => on.previewSchedule),
  schedules.one("run", "schedulesRun", {}, (on) => on.runSchedule),
  schedules.one("pause", "schedulesPause", {}, (on) => (server, id) => on.pauseSchedule(server, id, true)),
  schedules.one(
    "continue",
    "schedulesContinue",
    {},
    (on) => (server, id) => on.pauseSchedule(server, id, false),
  ),
  schedules.one("delete", "schedulesDelete", {}, (on) => on.deleteSchedule),
];
