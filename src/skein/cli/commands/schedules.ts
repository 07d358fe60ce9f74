// `skein schedules`: the schedules of the user of a running server.

import { type Command, command, type Options } from "../command.ts";
import { SERVER, serverOf, show } from "./options.ts";

const schedules = () => import("../schedules.ts");

const TIMES = {
  cron: { value: "LINE", about: (texts) => texts.options.scheduleCron },
  at: { value: "TIME", about: (texts) => texts.options.scheduleAt },
  timezone: { value: "ZONE", about: (texts) => texts.options.scheduleZone },
  until: { value: "TIME", about: (texts) => texts.options.scheduleUntil },
} as const satisfies Options;

export const SCHEDULES: readonly Command[] = [
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
];
