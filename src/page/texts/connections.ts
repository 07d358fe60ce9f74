// The words of the connections, in each language. They come with their view: the first view has no room for them.

import { locale } from "../texts.ts";

const en = {
  title: "Connections",
  about: "Agents use these accounts and secrets for you. The server encrypts them and never shows them.",
  aboutTenant:
    "Agents use these accounts and secrets for all users of the tenant. The server never shows them.",
  empty: "Accounts that you connect appear here.",
  more: (count: string) => `Only the first ${count} are shown.`,
  connected: "connected",
  ended: "ended",
  type: "Kind",
  types: { mcp_oauth: "Signed in", static_bearer: "Token", environment_variable: "Variable for sandboxes" },
  server: "MCP server",
  variable: "Variable",
  hosts: "Hosts that may receive it",
  allHosts: "all",
  expires: "Token ends",
  thenRenewed: ", then the server renews it",
  changed: "Changed",
  why: "Why it ended",
  connectAgain: "Connect the account again: put in a new token under the same name.",
  disconnect: "Disconnect",
  disconnectOf: (id: string) => `Disconnect ${id}`,
  question: (id: string) => `Disconnect ${id}? Agents can no longer use it, and its tokens are revoked.`,
  revoked: (id: string) => `${id} is disconnected, and its issuer has ended its tokens.`,
  forgotten: (id: string) => `${id} is disconnected. Its tokens may work elsewhere until they expire.`,
  add: "Put in a token",
  idOf: {
    static_bearer: "The name of the MCP server, as in mcp__NAME__search.",
    environment_variable: "The name by which agents.yaml uses it.",
  },
  names: {
    id: "Name",
    mcp_server_url: "Address",
    token: "Token",
    secret_name: "Variable",
    "networking.allowed_hosts": "Hosts",
    secret_value: "Value",
  },
  fields: {
    mcp_server_url: "The token is sent to this address only.",
    "networking.allowed_hosts":
      "One name a line, such as api.example.com. The value is sent to these hosts only.",
  },
  store: "Store",
  exists: (id: string) => `${id} exists. Store again to replace it.`,
  stored: (id: string) => `${id} is stored.`,
};

const de: typeof en = {
  title: "Verbindungen",
  about:
    "Agenten nutzen diese Konten und Geheimnisse für Sie. Der Server verschlüsselt sie und zeigt sie nie.",
  aboutTenant:
    "Agenten nutzen diese Konten und Geheimnisse für alle Benutzer des Mandanten. Der Server zeigt sie nie.",
  empty: "Hier erscheinen Konten, die Sie verbinden.",
  more: (count) => `Nur die ersten ${count} werden gezeigt.`,
  connected: "verbunden",
  ended: "beendet",
  type: "Art",
  types: { mcp_oauth: "Angemeldet", static_bearer: "Token", environment_variable: "Variable für Sandboxen" },
  server: "MCP-Server",
  variable: "Variable",
  hosts: "Hosts, die sie bekommen dürfen",
  allHosts: "alle",
  expires: "Token endet",
  thenRenewed: ", dann erneuert es der Server",
  changed: "Geändert",
  why: "Warum sie endete",
  connectAgain: "Verbinden Sie das Konto neu: Geben Sie unter demselben Namen ein neues Token ein.",
  disconnect: "Trennen",
  disconnectOf: (id) => `${id} trennen`,
  question: (id) => `${id} trennen? Agenten können es nicht mehr nutzen, und seine Tokens werden widerrufen.`,
  revoked: (id) => `${id} ist getrennt, und der Aussteller hat die Tokens beendet.`,
  forgotten: (id) => `${id} ist getrennt. Die Tokens gelten anderswo vielleicht noch, bis sie ablaufen.`,
  add: "Token eingeben",
  idOf: {
    static_bearer: "Der Name des MCP-Servers, wie in mcp__NAME__search.",
    environment_variable: "Der Name, unter dem agents.yaml sie nutzt.",
  },
  names: {
    id: "Name",
    mcp_server_url: "Adresse",
    token: "Token",
    secret_name: "Variable",
    "networking.allowed_hosts": "Hosts",
    secret_value: "Wert",
  },
  fields: {
    mcp_server_url: "Das Token wird nur an diese Adresse gesendet.",
    "networking.allowed_hosts":
      "Ein Name je Zeile, wie api.example.com. Der Wert wird nur an diese Hosts gesendet.",
  },
  store: "Speichern",
  exists: (id) => `${id} gibt es schon. Speichern Sie noch einmal, um es zu ersetzen.`,
  stored: (id) => `${id} ist gespeichert.`,
};

export const connectionTexts = (): typeof en => (locale().startsWith("de") ? de : en);
