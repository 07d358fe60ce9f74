// The German texts.

import { amount, number } from "../locale.ts";
import type { Texts } from "./en.ts";

const threads = (count: number) => amount(count, "Unterhaltung", "Unterhaltungen");
const messages = (count: number) => amount(count, "Nachricht", "Nachrichten");
const files = (count: number, bytes: number) =>
  `${amount(count, "Datei", "Dateien")} (${number(bytes)} Byte)`;

export const de: Texts = {
  help: {
    head: (version, docs) => `skein ${version}: ein Server für Agenten

Einstellungen kommen aus config/server.yaml, der Umgebung und einer Datei .env.
Dokumentation: ${docs}`,
    ofOne: "`skein BEFEHL --help` zeigt die Optionen eines Befehls.",
    needsOne: (group) => `\`skein ${group}\` braucht einen dieser Befehle.`,
    unknownCommand: (name) => `unbekannter Befehl \`${name}\``,
    unexpected: (argument) => `unerwartetes Argument \`${argument}\``,
    quoteMessage: ": setzen Sie die Nachricht in Anführungszeichen",
    missingArgument: (name) => `das Argument ${name} fehlt`,
    missingOption: (name) => `die Option --${name} fehlt`,
    option(fault) {
      const [, name = ""] = /'([^']+)'/.exec(fault) ?? [];
      if (fault.startsWith("Unknown option")) return `unbekannte Option ${name}`;
      if (fault.includes("does not take an argument")) return `die Option ${name} nimmt keinen Wert`;
      return fault.startsWith("Option") ? `die Option ${name} braucht einen Wert` : fault;
    },
  },
  envUnreadable: (file, why) => `\`${file}\` lässt sich nicht lesen: ${why}`,
  commands: {
    init: "ein Projekt mit Agent, Werkzeug und Hook anlegen",
    serve: "die Agenten aus agents.yaml anbieten",
    chat: "mit einem laufenden Server sprechen oder eine Nachricht senden",
    acp: "einen Editor über stdio mit einem Agenten eines laufenden Servers verbinden",
    configCheck: "die Konfiguration prüfen und alle Fehler auflisten",
    configDiff: "anzeigen, was eine andere Agenten-Datei ändern würde",
    keysCreate: "einen API-Schlüssel erstellen",
    keysGenerate: "einen Schlüssel für BOOTSTRAP_API_KEY ausgeben, ohne ihn zu speichern",
    keysList: "Schlüssel auflisten, ohne ihre Geheimnisse",
    keysRevoke: "einen Schlüssel widerrufen",
    backup: "die Daten eines laufenden Servers sichern",
    storeCheck: "den Speicher auf Widersprüche prüfen, auch während ein Server ihn verwendet",
    restore: "die Daten durch eine Sicherung ersetzen; der Server darf nicht laufen",
    threadsExport: "die Unterhaltungen einer Person in einen Ordner schreiben",
    threadsImport: "Unterhaltungen aus einem exportierten Ordner anlegen",
    schedulesList: "Ihre Zeitpläne auflisten",
    schedulesPut: "einen Zeitplan anlegen oder ersetzen und seine nächsten Termine ausgeben",
    schedulesPreview: "die nächsten Termine eines Zeitplans ausgeben, ohne ihn zu speichern",
    schedulesRun: "jetzt einen Lauf eines Zeitplans starten und dessen Unterhaltung ausgeben",
    schedulesPause: "einen Zeitplan pausieren",
    schedulesContinue: "einen pausierten Zeitplan fortsetzen",
    schedulesDelete: "einen Zeitplan löschen",
    triggersList: "Ihre Auslöser auflisten",
    triggersPut: "einen Auslöser anlegen oder ersetzen und Adresse und neues Geheimnis ausgeben",
    triggersRotate: "einem Auslöser ein neues Geheimnis geben und es ausgeben",
    triggersTest: "den Lauf anzeigen, den eine Zustellung starten würde",
    triggersDeliveries: "die letzten 20 Zustellungen eines Auslösers auflisten",
    triggersDelete: "einen Auslöser löschen",
    webhooksList: "Ihre Webhooks auflisten",
    webhooksPut: "einen Webhook anlegen oder ersetzen und sein neues Geheimnis ausgeben",
    webhooksRotate: "einem Webhook ein neues Geheimnis geben und es ausgeben",
    webhooksTest: "ein Beispiel an einen Webhook senden",
    webhooksDeliveries: "die letzten Zustellungen eines Webhooks auflisten",
    webhooksSend: "eine Zustellung eines Webhooks erneut senden",
    webhooksDelete: "einen Webhook mit seinen Zustellungen löschen",
    connectionsList: "Ihre Verbindungen auflisten; Geheimnisse werden nie angezeigt",
    connectionsPut: "ein Token oder eine Variable aus der Standardeingabe speichern",
    connectionsSignIn: "eine Adresse ausgeben, unter der Sie ein Konto im Browser verbinden",
    connectionsDelete: "eine Verbindung löschen und ihre Token widerrufen",
    audit: "die neuesten Einträge des Protokolls auflisten",
  },
  options: {
    config: "Datei mit den Einstellungen des Servers [CONFIG_FILE, config/server.yaml]",
    agents: "Datei mit den Agenten [AGENTS_FILE, ./agents.yaml]",
    data: "Ordner für die Datenbank und die Arbeitsbereiche [DATA_DIR, ./data]",
    port: "Port des Servers; 0 wählt einen freien Port [PORT, 8000]",
    host: "Adresse des Servers [HOST, 127.0.0.1]",
    workers: "Prozesse, die sich den Port teilen, mit redis oder postgres [WORKERS, 1]",
    url: "Adresse des laufenden Servers; SKEIN_API_KEY enthält Schlüssel oder Token [http://127.0.0.1:8000]",
    agent: "Agent; Vorgabe: der Agent der Unterhaltung oder der erste",
    user: "Person; nicht nötig bei AUTH=none",
    tenant: "Mandant der Person [default]",
    model: "Modell, etwa anthropic:claude-sonnet-5",
    thread: "Unterhaltung, die fortgesetzt wird; Vorgabe: eine neue",
    eventsAsJson: "die Ereignisse des Laufs als JSON ausgeben, eines pro Zeile",
    temporary: "die Nachricht in einer neuen Unterhaltung senden, die der Server nach dem Lauf löscht",
    keyUser: "Person, der der Schlüssel gehört; erforderlich",
    scopes: "Rechte, durch Kommas getrennt: read, run, tools, admin, operator [read,run]",
    keyName: "Zweck des Schlüssels",
    expires: "Ablauf, etwa 90d, 12h oder 2031-01-31; Vorgabe: nie",
    keysOfTenant: "nur die Schlüssel dieses Mandanten auflisten",
    findingsAsJson: "Widersprüche als JSON ausgeben, einen pro Zeile",
    resume: "einen unterbrochenen Import fortsetzen; vorhandene Unterhaltungen überspringen",
    scheduleInput: "Nachricht, mit der jeder Lauf beginnt; erforderlich",
    scheduleCron: "Termine als fünf Felder, etwa '0 9 * * MON-FRI'; oder --at",
    scheduleAt: "Zeitpunkt eines einzelnen Laufs, etwa 2031-05-04T10:00:00+02:00",
    scheduleZone: "IANA-Zeitzone von --cron [UTC]",
    scheduleUntil: "Zeitpunkt, nach dem der Zeitplan keine Läufe mehr startet",
    scheduleAgent: "Agent der Läufe; Vorgabe: der Standard-Agent",
    scheduleThread: "Unterhaltung, die alle Läufe fortsetzen; Vorgabe: jeweils eine neue",
    scheduleOverlap: "wenn der letzte Lauf noch nicht fertig ist: skip, queue, allow [skip]",
    scheduleCatchUp: "verpasste Läufe, die nachgeholt werden: none, latest, all [latest]",
    scheduleQuestions: "wenn ein Lauf eine Frage stellt: wait, deny [wait]",
    schedulePaused: "keine Läufe starten, bis der Zeitplan fortgesetzt wird",
    triggerAgent: "Agent, den jede Zustellung startet; erforderlich",
    triggerScheme:
      "wie eine Zustellung geprüft wird: github, slack, stripe, standard-webhooks, hmac, token; erforderlich",
    triggerInput: "Nachricht des Laufs, etwa '{{body.issue.title}}'; erforderlich",
    triggerThread:
      "Vorlage; Zustellungen, die denselben Text ergeben, teilen sich eine Unterhaltung; Vorgabe: jeweils eine neue",
    triggerHeader: "Header mit der Signatur oder dem Token, für hmac und token",
    triggerPrefix: "Text vor der Signatur, für hmac",
    triggerPaused: "keine Zustellungen annehmen, bis der Trigger ohne diese Option gesetzt wird",
    triggerSecret: "Datei mit dem Geheimnis des Absenders; sonst erzeugt der Server eines",
    triggerBody: "Datei mit dem Body einer Zustellung als JSON; erforderlich",
    webhookAddress: "Adresse, die die Ereignisse empfängt; erforderlich",
    webhookOn: "Ereignisse, durch Kommas getrennt [run.ended,run.failed]",
    webhookOnly: "Agenten, deren Ereignisse gesendet werden, durch Kommas getrennt; Vorgabe: alle",
    webhookOrdered: "die Ereignisse einer Unterhaltung der Reihe nach senden",
    webhookPaused: "nichts senden, bis der Webhook ohne diese Option gesetzt wird",
    webhookStatus: "nur Zustellungen mit diesem Status auflisten: pending, delivered, failed",
    webhookDelivery: "ID der Zustellung; erforderlich",
    connectionAddress: "Adresse des MCP-Servers, der das Token erhält",
    connectionVariable: "Name der Variablen, anstelle einer Adresse",
    connectionHosts: "Hosts, die die Variable erhalten dürfen, durch Kommas getrennt; Vorgabe: alle",
    auditUser: "nur auflisten, was diese Person getan hat und was andere mit ihren Daten getan haben",
    auditAction: "nur diese Aktion auflisten, etwa thread.delete, oder eine Gruppe von Aktionen, etwa thread",
    auditSince: "nichts vor diesem Zeitpunkt auflisten, etwa 2031-05-04T10:00:00Z",
    auditTenant: "Mandant, für Betreiber; Vorgabe: der Mandant des Schlüssels",
  },
  init: {
    exists: (dir, found) =>
      `${dir} enthält bereits ${found}; es wurde nichts geschrieben. Geben Sie einen neuen Ordner an: skein init meine-agenten`,
    wrote: (written, dir) => `${written} in ${dir} geschrieben. Weiter:`,
    otherTerminal: "in einem anderen Terminal",
    example: "Wirf zwei Würfel.",
    script:
      "Ohne Schlüssel ersetzt ein Skript das Modell; .env.example zeigt, wie Sie ein echtes einrichten.",
    fromCopy: (path) =>
      `package.json installiert skein aus ${path}, weil diese Kopie nicht aus einer Registry stammt.`,
  },
  keys: {
    expiryInPast: "muss in der Zukunft liegen, etwa 90d, 12h, 2031-01-31 oder 2031-01-31T10:00:00Z",
    created: ({ id, user, tenant, scopes }, end) =>
      `Schlüssel ${id} für Person ${user} des Mandanten ${tenant}: ${scopes}, gültig ${end}.\nDer Schlüssel wird nur einmal angezeigt. \`skein keys revoke ${id}\` widerruft ihn.`,
    until: (time) => `bis ${time}`,
    untilRevoked: "bis er widerrufen wird",
    generated:
      "Der Schlüssel ist nicht gespeichert. Starten Sie einen Server mit ihm als BOOTSTRAP_API_KEY: Der Schlüssel hat dann alle Rechte, als Person `admin`.",
    head: ["ID", "MANDANT", "PERSON", "RECHTE", "ERSTELLT", "STATUS", "NAME"],
    states: { revoked: "widerrufen", valid: "gültig", until: "bis", expired: "abgelaufen" },
    unknown: "Es gibt keinen Schlüssel mit dieser ID. `skein keys list` zeigt alle Schlüssel.",
    revoked: (id) =>
      `${id} ist widerrufen. Server akzeptieren den Schlüssel möglicherweise noch einige Sekunden.`,
  },
  schedules: {
    head: ["ID", "STATUS", "TERMINE", "NÄCHSTER", "LETZTER"],
    states: { active: "aktiv", paused: "pausiert", completed: "beendet" },
    outcomes: { started: "gestartet", skipped: "übersprungen", failed: "fehlgeschlagen" },
    stored: (id) => `${id} ist gespeichert. Die nächsten Termine:`,
    started: (run) => `Der Lauf ${run} ist gestartet. Seine Unterhaltung:`,
    paused: (id) => `${id} ist pausiert.`,
    continued: (id) => `${id} wird fortgesetzt.`,
    deleted: (id) => `${id} ist gelöscht. Die Läufe bleiben erhalten.`,
  },
  triggers: {
    head: ["ID", "AGENT", "VERFAHREN", "STATUS", "ADRESSE"],
    deliveryHead: ["ZEIT", "ZUSTELLUNG", "ERGEBNIS", "UNTERHALTUNG", "LAUF", "GRUND"],
    states: { on: "aktiv", paused: "pausiert", noSecret: "ohne Geheimnis" },
    created: (id) =>
      `Geben Sie Adresse und Geheimnis von ${id} an den Absender weiter. Das Geheimnis wird nur einmal angezeigt.`,
    stored: (id) => `${id} ist gespeichert. Die Adresse:`,
    noJson: (file) => `\`${file}\` enthält kein JSON.`,
    deleted: (id) => `${id} ist gelöscht.`,
  },
  audit: { head: ["ZEIT", "WER", "AKTION", "ZIEL", "ERGEBNIS", "ADRESSE"] },
  webhooks: {
    head: ["ID", "EREIGNISSE", "STATUS", "ADRESSE"],
    deliveryHead: ["ID", "EREIGNIS", "STATUS", "VERSUCHE", "ERSTELLT", "LAUF", "FEHLER"],
    states: { on: "aktiv", paused: "pausiert", disabled: "deaktiviert", failing: "schlägt fehl seit" },
    created: (id) =>
      `Der Webhook ${id} signiert seine Zustellungen mit diesem Geheimnis. Es wird nur einmal angezeigt.`,
    replaced: (id) => `${id} wurde ersetzt und behält sein Geheimnis.`,
    rotated:
      "Das Geheimnis wird nur einmal angezeigt. Zustellungen werden 24 Stunden lang zusätzlich mit dem vorigen Geheimnis signiert.",
    delivered: "Der Empfänger hat das Beispiel angenommen.",
    notDelivered: (why) => `Der Empfänger hat das Beispiel nicht angenommen: ${why}.`,
    sent: (id) => `${id} wird erneut gesendet.`,
    deleted: (id) => `${id} ist gelöscht.`,
  },
  connections: {
    head: ["ID", "ART", "FÜR", "GÜLTIG BIS", "ZULETZT VERWENDET", "STATUS"],
    states: { connected: "verbunden", ended: "beendet", notConnected: "nicht verbunden" },
    noSecret: "Übergeben Sie das Token oder den Wert über die Standardeingabe, etwa mit `… < token.txt`.",
    oneOf: "Geben Sie entweder --address oder --variable an.",
    stored: (id) => `${id} ist gespeichert.`,
    open: (until) => `Öffnen Sie diese Adresse in Ihrem Browser bis ${until}.`,
    deleted: (id) => `${id} ist gelöscht.`,
    notRevoked:
      "Kein Aussteller hat ein Token widerrufen. Anderswo ist es möglicherweise noch gültig, bis es abläuft.",
  },
  backup: {
    exists: (dir) => `${dir} gibt es bereits. Geben Sie einen neuen Ordner an.`,
    inProgress: (part, dir) =>
      `${part} gibt es bereits: Eine andere Sicherung nach ${dir} läuft noch oder wurde abgebrochen. Warten Sie, bis sie fertig ist, oder löschen Sie ${part}.`,
    onServer: (path, count, bytes) =>
      `Die Sicherung liegt auf dem Rechner des Servers: ${path}, mit ${files(count, bytes)}.`,
    done: (count, bytes, dir) => `${files(count, bytes)} nach ${dir} gesichert.`,
    withoutSandboxes: (count) =>
      `Die Sicherung enthält die Dateien von ${amount(count, "Sandbox", "Sandboxen")} nicht, weil sie in Docker-Volumes liegen. Sichern Sie sie auf den Rechnern der Engines.`,
    restored: (count, dir, before) =>
      `${amount(count, "Datei", "Dateien")} in ${dir} wiederhergestellt. Die vorigen Daten liegen in ${before}; löschen Sie sie, wenn Sie sie nicht mehr brauchen.`,
  },
  config: { warning: (text) => `Warnung: ${text}`, noChanges: "keine Änderungen" },
  store: {
    threadOf: (thread, owner) => `Unterhaltung ${thread} von ${owner}`,
    run: (run) => `Lauf ${run}`,
    found: (count) =>
      count === 0 ? "Keine Widersprüche gefunden" : amount(count, "Widerspruch", "Widersprüche"),
    read: (read) =>
      [
        threads(read.threads),
        amount(read.runs, "Lauf", "Läufe"),
        messages(read.messages),
        amount(read.events, "Ereignis", "Ereignisse"),
      ].join(", "),
  },
  threads: {
    ownerFromKey: "Mit --url bestimmt SKEIN_API_KEY die Person; lassen Sie --user und --tenant weg.",
    ownerMissing: "Geben Sie die Person mit --user und --tenant an.",
    notDurable:
      "STORE=memory speichert Unterhaltungen nicht dauerhaft. Verwenden Sie STORE=sqlite, redis oder postgres.",
    exported: (count, written, dir) => `${threads(count)} mit ${messages(written)} nach ${dir} exportiert.`,
    folderExists: (path) => `${path} gibt es bereits. Exportieren Sie in einen leeren Ordner.`,
    imported: (count, read, dir) => `${threads(count)} mit ${messages(read)} aus ${dir} importiert.`,
    skipped: (count) =>
      count === 1
        ? "1 vorhandene Unterhaltung wurde übersprungen."
        : `${number(count)} vorhandene Unterhaltungen wurden übersprungen.`,
    exists: (id) =>
      `Die Unterhaltung \`${id}\` gibt es bereits. Der Import überschreibt keine Unterhaltung; --resume überspringt sie.`,
    noFolder: (dir) => `${dir} ist kein lesbarer Ordner.`,
    incomplete: (file, fault) => `${file} ${fault}: Der Export dieser Unterhaltung ist unvollständig.`,
    missing: "fehlt",
    wrongId: (file, id) => `${file}: session_id muss der Name des Ordners sein, \`${id}\`.`,
    tooLarge: (file, mib) => `${file} ist größer als ${number(mib)} MiB.`,
    duplicate: (place, id) => `${place}: Die Nachricht \`${id}\` kommt zweimal vor.`,
    longLine: (place, mib) => `${place}: ist länger als ${number(mib)} MiB.`,
    tooDeep: (place, most, depth) =>
      `${place}: darf höchstens ${number(most)} Ebenen tief verschachtelt sein; es sind ${number(depth)} Ebenen.`,
    noJson: (place) => `${place}: muss JSON sein`,
    refused: "abgelehnt",
  },
  serve: {
    serves: (version, address, facts) => `Skein ${version} läuft auf ${address} (${facts}).`,
    workers: (count) => `${number(count)} Worker`,
    openOrTry: "Öffnen Sie die Adresse im Browser oder probieren Sie:",
    try: "Probieren Sie:",
    asks: (model, reason) => `Der Standard-Agent verwendet ${model} (${reason}).`,
    isScript:
      "Dieses Modell ist ein Skript: Setzen Sie ANTHROPIC_API_KEY oder OPENAI_API_KEY, oder nennen Sie ein Modell in agents.yaml.",
    example: "Hallo, was kannst du?",
    closing:
      "Der Server wird beendet; aktive Läufe haben noch Zeit zum Abschließen. Drücken Sie noch einmal Strg-C, um ihn sofort zu beenden.",
  },
  chat: {
    noServer: (url) => `Unter ${url} antwortet kein Skein-Server. \`npm start\` startet einen.`,
    jsonNeedsMessage: "--json braucht eine Nachricht.",
    temporaryNeedsMessage: "--temporary braucht eine Nachricht und keinen --thread.",
    emptyMessage: "Die Nachricht ist leer.",
    longInput: (bytes) => `Die Eingabe ist länger als ${number(bytes)} Byte.`,
    noText: "Die Eingabe ist kein UTF-8-Text.",
    waits: (thread) => `(Der Lauf wartet auf eine Antwort: \`skein chat --thread ${thread}\`.)`,
    stopping: "wird angehalten; noch einmal Strg-C, um nicht länger zuzusehen",
    stoppingAfterStep: "wird nach diesem Schritt angehalten; noch einmal Strg-C, um sofort anzuhalten",
    left: "Anzeige beendet; der Lauf geht möglicherweise weiter",
    retrying: (reason) => `(${reason} Neuer Versuch; Strg-C bricht ab.)`,
    connectionFailed: (reason) => `Die Verbindung ist fehlgeschlagen: ${reason}`,
    thread: (id, url) => `Unterhaltung ${id} auf ${url}. /help zeigt die Befehle.`,
    toContinue: (thread) => `Fortsetzen: skein chat --thread ${thread}`,
    earlier: (count) => `(${amount(count, "frühere Nachricht", "frühere Nachrichten")})`,
    answers: (agent, model) => `${agent} antwortet mit ${model}.`,
    noAgents: "Es gibt keine Agenten.",
    noAgent: (name) => `Es gibt keinen Agenten ${name}`,
    noModel: (name) => `Es gibt kein Modell ${name}`,
    noCommand: (name) => `Es gibt keinen Befehl ${name}`,
    defaultModel: "Vorgabe",
    otherModels: "und andere, als provider:model",
    noNumber: (written) => `Die Liste hat keine Nummer ${written}.`,
    noThreads: "Es gibt noch keine Unterhaltungen.",
    noTitle: "(ohne Titel)",
    states: { idle: "", busy: "läuft", interrupted: "wartet auf eine Antwort", error: "fehlgeschlagen" },
    help: {
      help: "die Befehle anzeigen",
      new: "eine neue Unterhaltung beginnen",
      threads: "die neuesten Unterhaltungen anzeigen oder eine per Nummer oder ID öffnen",
      agent: "die Agenten anzeigen oder den Agenten wechseln",
      model: "die Modelle anzeigen oder das Modell wechseln; /model default: das des Agenten",
      quit: "beenden; ebenso Strg-D sowie Strg-C in einer leeren Zeile",
      rest: "Alles andere ist eine Nachricht. Um Text zu senden, der wie ein Befehl aussieht, setzen Sie ein Leerzeichen davor.",
    },
  },
  questions: {
    askedBy: (agent, prompt) => `${agent} fragt: ${prompt}`,
    choices:
      "[j]a, [a] immer in dieser Unterhaltung, [A] immer mit diesem Agenten, [e] bearbeiten, oder nein und warum",
    widths: (widths) => `(immer für mehr: ${widths})`,
    commandWidth: (starts) => `Befehle, die mit ${starts.join(" oder ")} beginnen`,
    toolWidth: (tool) => `jeden Aufruf von ${tool}`,
    approving: ["j", "ja"],
    denying: /^(?:no?|nein)\b[,.:]?\s*/i,
    several: "mehrere mit Kommas: ",
    noOption: "Das ist keine der Möglichkeiten. Versuchen Sie es noch einmal: ",
    connect: "[j]a, es ist verbunden, oder nein",
    args: "Argumente, als JSON: ",
    noObject: "Das ist kein JSON-Objekt. Versuchen Sie es noch einmal: ",
  },
  run: {
    statuses: {
      completed: "fertig",
      failed: "fehlgeschlagen",
      interrupted: "wartet",
      cancelled: "abgebrochen",
    },
    waits: "Der Lauf wartet auf ein Ergebnis, das später kommt.",
    ends: {
      cancelled: "Der Lauf wurde angehalten.",
      credentials_revoked: "Der Lauf wurde angehalten, weil die Zugangsdaten widerrufen wurden.",
      superseded: "Eine neue Nachricht traf vor dem Ergebnis ein, auf das der Lauf wartete.",
      interrupt: "Der Lauf wurde nach einem Schritt angehalten. Senden Sie eine Nachricht, um fortzufahren.",
      refusal: "Das Modell hat die Antwort abgelehnt.",
      max_tokens: "Die Antwort hat das Token-Limit des Modells erreicht.",
      max_iterations:
        "Der Lauf hat die Höchstzahl an Modellaufrufen erreicht. Senden Sie eine Nachricht, um fortzufahren.",
      token_budget: "Der Lauf hat sein Token-Budget verbraucht. Senden Sie eine Nachricht, um fortzufahren.",
      time_budget: "Der Lauf hat sein Zeitbudget verbraucht. Senden Sie eine Nachricht, um fortzufahren.",
      loop_detected: "Der Lauf hat sich im Kreis gedreht. Senden Sie eine Nachricht, um fortzufahren.",
      quota: "Das Kontingent ist verbraucht.",
    },
    ms: (ms) => `${number(ms)} ms`,
  },
};
