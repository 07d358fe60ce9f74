// `skein webhooks`: the webhooks of the user of a running server.

import { type Command, command } from "../command.ts";
import { SERVER, serverOf, show } from "./options.ts";

const webhooks = () => import("../webhooks.ts");

export const WEBHOOKS: readonly Command[] = [
  command({
    name: "webhooks list",
    about: (texts) => texts.commands.webhooksList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await webhooks()).listWebhooks(serverOf(url)) }),
  }),
  command({
    name: "webhooks put",
    argument: "ID",
    about: (texts) => texts.commands.webhooksPut,
    options: {
      address: { value: "URL", about: (texts) => texts.options.webhookAddress, required: true },
      on: { value: "LIST", about: (texts) => texts.options.webhookOn },
      only: { value: "LIST", about: (texts) => texts.options.webhookOnly },
      ordered: { about: (texts) => texts.options.webhookOrdered },
      paused: { about: (texts) => texts.options.webhookPaused },
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") =>
      show(await (await webhooks()).putWebhook(serverOf(url), id, options)),
  }),
  command({
    name: "webhooks rotate",
    argument: "ID",
    about: (texts) => texts.commands.webhooksRotate,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await webhooks()).rotateWebhook(serverOf(url), id)),
  }),
  command({
    name: "webhooks test",
    argument: "ID",
    about: (texts) => texts.commands.webhooksTest,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await webhooks()).testWebhook(serverOf(url), id) }),
  }),
  command({
    name: "webhooks deliveries",
    argument: "ID",
    about: (texts) => texts.commands.webhooksDeliveries,
    options: { status: { value: "STATUS", about: (texts) => texts.options.webhookStatus }, ...SERVER },
    run: async ({ url, status }, id = "") =>
      show({ output: await (await webhooks()).listDeliveries(serverOf(url), id, status) }),
  }),
  command({
    name: "webhooks send",
    argument: "ID",
    about: (texts) => texts.commands.webhooksSend,
    options: {
      delivery: { value: "ID", about: (texts) => texts.options.webhookDelivery, required: true },
      ...SERVER,
    },
    run: async ({ url, delivery = "" }, id = "") =>
      show({ output: await (await webhooks()).sendDelivery(serverOf(url), id, delivery) }),
  }),
  command({
    name: "webhooks delete",
    argument: "ID",
    about: (texts) => texts.commands.webhooksDelete,
    options: SERVER,
    run: async ({ url }, id = "") =>
      show({ output: await (await webhooks()).deleteWebhook(serverOf(url), id) }),
  }),
];
