// The texts of the connections, in each language. They are loaded with their view, because the first view has no room
// for them.

import { locale } from "../texts.ts";

const en = {
  title: "Connections",
  about:
    "Agents use these accounts and secrets on your behalf. The server encrypts them and never shows them.",
  aboutTenant:
    "Agents use these accounts and secrets on behalf of all the tenant's users. The server never shows them.",
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
  expires: "Token expires",
  thenRenewed: ", then the server renews it",
  changed: "Changed",
  used: "Last used",
  why: "Why it ended",
  connectAgain: "To reconnect the account, sign in, or enter a new token under the same name.",
  disconnect: "Disconnect",
  disconnectOf: (id: string) => `Disconnect ${id}`,
  question: (id: string) => `Disconnect ${id}? Agents can no longer use it, and its tokens are revoked.`,
  revoked: (id: string) => `${id} is disconnected, and its issuer has revoked its tokens.`,
  forgotten: (id: string) => `${id} is disconnected. Its tokens may still work elsewhere until they expire.`,
  connect: "Connect",
  signInAgain: "Sign in again",
  open: "Open the sign-in in a new tab",
  waits: "Waiting for the sign-in…",
  over: "The address has expired. Sign in again.",
  signedIn: (id: string) => `${id} is connected.`,
  add: "Add a token",
  idOf: {
    static_bearer: "The name of the MCP server, as in mcp__NAME__search.",
    environment_variable: "The name that agents.yaml uses for it.",
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
      "One name per line, such as api.example.com. The value is sent to these hosts only.",
  },
  store: "Store",
  exists: (id: string) => `${id} already exists. Store it again to replace it.`,
  stored: (id: string) => `${id} is stored.`,
};

const de: typeof en = {
  title: "Verbindungen",
  about:
    "Agenten verwenden diese Konten und Geheimnisse in Ihrem Namen. Der Server verschlüsselt sie und zeigt sie nie an.",
  aboutTenant:
    "Agenten verwenden diese Konten und Geheimnisse für alle Personen des Mandanten. Der Server zeigt sie nie an.",
  empty: "Hier erscheinen Konten, die Sie verbinden.",
  more: (count) => `Nur die ersten ${count} werden angezeigt.`,
  connected: "verbunden",
  ended: "beendet",
  type: "Art",
  types: { mcp_oauth: "Angemeldet", static_bearer: "Token", environment_variable: "Variable für Sandboxen" },
  server: "MCP-Server",
  variable: "Variable",
  hosts: "Hosts, die sie erhalten dürfen",
  allHosts: "alle",
  expires: "Token läuft ab",
  thenRenewed: ", danach erneuert es der Server",
  changed: "Geändert",
  used: "Zuletzt verwendet",
  why: "Grund des Endes",
  connectAgain:
    "Verbinden Sie das Konto neu: Melden Sie sich an, oder geben Sie unter demselben Namen ein neues Token ein.",
  disconnect: "Trennen",
  disconnectOf: (id) => `${id} trennen`,
  question: (id) =>
    `${id} trennen? Agenten können die Verbindung dann nicht mehr verwenden, und ihre Token werden widerrufen.`,
  revoked: (id) => `${id} ist getrennt, und der Aussteller hat die Token widerrufen.`,
  forgotten: (id) =>
    `${id} ist getrennt. Anderswo sind die Token möglicherweise noch gültig, bis sie ablaufen.`,
  connect: "Verbinden",
  signInAgain: "Neu anmelden",
  open: "Anmeldung in neuem Tab öffnen",
  waits: "Wartet auf die Anmeldung…",
  over: "Die Adresse ist abgelaufen. Melden Sie sich neu an.",
  signedIn: (id) => `${id} ist verbunden.`,
  add: "Token eingeben",
  idOf: {
    static_bearer: "Der Name des MCP-Servers, wie in mcp__NAME__search.",
    environment_variable: "Der Name, unter dem agents.yaml sie verwendet.",
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
      "Ein Name pro Zeile, etwa api.example.com. Der Wert wird nur an diese Hosts gesendet.",
  },
  store: "Speichern",
  exists: (id) => `${id} gibt es bereits. Speichern Sie noch einmal, um den Eintrag zu ersetzen.`,
  stored: (id) => `${id} ist gespeichert.`,
};

export const connectionTexts = (): typeof en => (locale().startsWith("de") ? de : en);
