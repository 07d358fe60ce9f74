// `skein webhooks`: the webhooks of the user of a running server.

import type { Command } from "../command.ts";
import { commandsOf } from "./noun.ts";

const webhooks = commandsOf("webhooks", () => import("../webhooks.ts"));

export const WEBHOOKS: readonly Command[] = [
  webhooks.all("list", "webhooksList", {}, (on) => on.listWebhooks),
  webhooks.one(
    "put",
    "webhooksPut",
    {
      address: { value: "URL", about: (texts) => texts.options.webhookAddress, required: true },
      on: { value: "LIST", about: (texts) => texts.options.webhookOn },
      only: { value: "LIST", about: (texts) => texts.options.webhookOnly },
      ordered: { about: (texts) => texts.options.webhookOrdered },
      paused: { about: (texts) => texts.options.webhookPaused },
    },
    (on) => on.putWebhook,
  ),
  webhooks.one("rotate", "webhooksRotate", {}, (on) => on.rotateWebhook),
  webhooks.one("test", "webhooksTest", {}, (on) => on.testWebhook),
  webhooks.one(
    "deliveries",
    "webhooksDeliveries",
    { status: { value: "STATUS", about: (texts) => texts.options.webhookStatus } },
    (on) =>
      (server, id, { status }) =>
        on.listDeliveries(server, id, status),
  ),
  webhooks.one(
    "send",
    "webhooksSend",
    { delivery: { value: "ID", about: (texts) => texts.options.webhookDelivery, required: true } },
    (on) =>
      (server, id, { delivery = "" }) =>
        on.sendDelivery(server, id, delivery),
  ),
  webhooks.one("delete", "webhooksDelete", {}, (on) => on.deleteWebhook),
];
