// `skein triggers`: the triggers of the user of a running server.

import type { Command, Options } from "../command.ts";
import { commandsOf } from "./noun.ts";

const triggers = commandsOf("triggers", () => import("../triggers.ts"));

const SECRET = {
  secret: { value: "FILE", about: (texts) => texts.options.triggerSecret },
} as const satisfies Options;

export const TRIGGERS: readonly Command[] = [
  triggers.all("list", "triggersList", {}, (on) => on.listTriggers),
  triggers.one(
    "put",
    "triggersPut",
    {
      agent: { value: "NAME", about: (texts) => texts.options.triggerAgent, required: true },
      scheme: { value: "SCHEME", about: (texts) => texts.options.triggerScheme, required: true },
      input: { value: "TEMPLATE", about: (texts) => texts.options.triggerInput, required: true },
      thread: { value: "TEMPLATE", about: (texts) => texts.options.triggerThread },
      header: { value: "NAME", about: (texts) => texts.options.triggerHeader },
      prefix: { value: "TEXT", about: (texts) => texts.options.triggerPrefix },
      paused: { about: (texts) => texts.options.triggerPaused },
      ...SECRET,
    },
    (on) => on.putTrigger,
  ),
  triggers.one("rotate", "triggersRotate", SECRET, (on) => on.rotateTrigger),
  triggers.one(
    "test",
    "triggersTest",
    { body: { value: "FILE", about: (texts) => texts.options.triggerBody, required: true } },
    (on) =>
      (server, id, { body = "" }) =>
        on.testTrigger(server, id, body),
  ),
  triggers.one("deliveries", "triggersDeliveries", {}, (on) => on.listTriggerDeliveries),
  triggers.one("delete", "triggersDelete", {}, (on) => on.deleteTrigger),
];
