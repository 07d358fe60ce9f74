// `skein connections`: the accounts and secrets of the user of a running server.

import type { Command } from "../command.ts";
import { commandsOf } from "./noun.ts";

const connections = commandsOf("connections", () => import("../connections.ts"));

export const CONNECTIONS: readonly Command[] = [
  connections.all("list", "connectionsList", {}, (on) => on.listConnections),
  connections.one(
    "put",
    "connectionsPut",
    {
      address: { value: "URL", about: (texts) => texts.options.connectionAddress },
      variable: { value: "NAME", about: (texts) => texts.options.connectionVariable },
      hosts: { value: "LIST", about: (texts) => texts.options.connectionHosts },
    },
    (on) => async (server, id, options) => {
      const piped = await (await import("../piped-text.ts")).pipedText();
      return on.putConnection(server, id, options, piped);
    },
  ),
  connections.one("sign-in", "connectionsSignIn", {}, (on) => on.authorizeConnection),
  connections.one("delete", "connectionsDelete", {}, (on) => on.deleteConnection),
];
