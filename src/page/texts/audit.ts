// The texts of the audit trail, in each language. They are loaded with their view, because the first view has no room
// for them.

import { locale } from "../texts.ts";

const en = {
  title: "Audit trail",
  empty: "The trail has no entries yet.",
  at: "Time",
  actor: "Who",
  action: "Action",
  target: "Target",
  outcome: "Outcome",
  outcomes: { ok: "Done", refused: "Refused", failed: "Failed" },
  address: "From",
};

const de: typeof en = {
  title: "Audit-Protokoll",
  empty: "Das Protokoll enthält noch keine Einträge.",
  at: "Zeit",
  actor: "Wer",
  action: "Aktion",
  target: "Ziel",
  outcome: "Ergebnis",
  outcomes: { ok: "Ausgeführt", refused: "Abgelehnt", failed: "Fehlgeschlagen" },
  address: "Von",
};

export const auditTexts = (): typeof en => (locale().startsWith("de") ? de : en);
