// `skein triggers`: the triggers of the user of a running server.

import { type Command, command, type Options } from "../command.ts";
import { SERVER, serverOf, show } from "./options.ts";

const triggers = () => import("../triggers.ts");

const SECRET = {
  secret: { value: "FILE", about: (texts) => texts.options.triggerSecret },
} as const satisfies Options;

export const TRIGGERS: readonly Command[] = [
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
];
