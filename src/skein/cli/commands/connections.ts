// `skein connections`: the accounts and secrets of the user of a running server.

import { type Command, command } from "../command.ts";
import { SERVER, serverOf, show } from "./options.ts";

const connections = () => import("../connections.ts");

export const CONNECTIONS: readonly Command[] = [
  command({
    name: "connections list",
    about: (texts) => texts.commands.connectionsList,
    options: SERVER,
    run: async ({ url }) => show({ output: await (await connections()).listConnections(serverOf(url)) }),
  }),
  command({
    name: "connections put",
    argument: "ID",
    about: (texts) => texts.commands.connectionsPut,
    options: {
      address: { value: "URL", about: (texts) => texts.options.connectionAddress },
      variable: { value: "NAME", about: (texts) => texts.options.connectionVariable },
      hosts: { value: "LIST", about: (texts) => texts.options.connectionHosts },
      ...SERVER,
    },
    run: async ({ url, ...options }, id = "") => {
      const piped = await (await import("../piped-text.ts")).pipedText();
      return show({ output: await (await connections()).putConnection(serverOf(url), id, options, piped) });
    },
  }),
  command({
    name: "connections sign-in",
    argument: "ID",
    about: (texts) => texts.commands.connectionsSignIn,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await connections()).authorizeConnection(serverOf(url), id)),
  }),
  command({
    name: "connections delete",
    argument: "ID",
    about: (texts) => texts.commands.connectionsDelete,
    options: SERVER,
    run: async ({ url }, id = "") => show(await (await connections()).deleteConnection(serverOf(url), id)),
  }),
];
