// The texts of the webhooks, in each language. They are loaded with their view, because the first view has no room for
// them.

import { locale } from "../texts.ts";

const en = {
  title: "Webhooks",
  about: "The server sends these events to your address, signed with a secret.",
  empty: "Webhooks that you create appear here.",
  on: "on",
  paused: "paused",
  failing: "failing",
  disabled: "disabled",
  events: "Events",
  agents: "Agents",
  noDeliveries: "No events were sent in the last day.",
  event: "Event",
  status: "Status",
  statuses: { pending: "waiting", delivered: "delivered", failed: "failed" },
  created: "Created",
  actions: "Actions",
  sendAgain: "Send again",
  sendAgainOf: (id: string) => `Send ${id} again`,
  rotate: "New secret",
  refresh: "Refresh deliveries",
  try: "Send a sample",
  taken: "The receiver accepted the sample.",
  notTaken: (why: string) => `The receiver did not accept the sample: ${why}.`,
  deleteQuestion: "Delete this webhook and its deliveries?",
  address: "Address",
  create: "Create a webhook",
  shownOnce: "The secret is shown only once:",
};

const de: typeof en = {
  title: "Webhooks",
  about: "Der Server sendet diese Ereignisse an Ihre Adresse und signiert sie mit einem Geheimnis.",
  empty: "Hier erscheinen Webhooks, die Sie anlegen.",
  on: "aktiv",
  paused: "pausiert",
  failing: "schlägt fehl",
  disabled: "deaktiviert",
  events: "Ereignisse",
  agents: "Agenten",
  noDeliveries: "In den letzten 24 Stunden wurden keine Ereignisse gesendet.",
  event: "Ereignis",
  status: "Status",
  statuses: { pending: "wartet", delivered: "zugestellt", failed: "fehlgeschlagen" },
  created: "Erstellt",
  actions: "Aktionen",
  sendAgain: "Erneut senden",
  sendAgainOf: (id) => `${id} erneut senden`,
  rotate: "Neues Geheimnis",
  refresh: "Zustellungen neu laden",
  try: "Beispiel senden",
  taken: "Der Empfänger hat das Beispiel angenommen.",
  notTaken: (why) => `Der Empfänger hat das Beispiel nicht angenommen: ${why}.`,
  deleteQuestion: "Diesen Webhook mit seinen Zustellungen löschen?",
  address: "Adresse",
  create: "Webhook anlegen",
  shownOnce: "Das Geheimnis wird nur einmal angezeigt:",
};

export const webhookTexts = (): typeof en => (locale().startsWith("de") ? de : en);
