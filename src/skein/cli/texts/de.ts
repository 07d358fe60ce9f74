// German.

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
    chat: "mit einem laufenden Server sprechen, oder eine Nachricht senden",
    acp: "einen Editor über stdio mit einem Agenten eines laufenden Servers verbinden",
    configCheck: "die Konfiguration prüfen und alle Fehler nennen",
    configDiff: "zeigen, was eine andere Agenten-Datei ändern würde",
    keysCreate: "einen API-Schlüssel erstellen",
    keysGenerate: "einen Schlüssel für BOOTSTRAP_API_KEY ausgeben, ohne ihn zu speichern",
    keysList: "Schlüssel auflisten, ohne ihre Geheimnisse",
    keysRevoke: "einen Schlüssel widerrufen",
    backup: "die Daten eines laufenden Servers sichern",
    storeCheck: "den Speicher auf Widersprüche prüfen, auch während ein Server ihn benutzt",
    restore: "die Daten durch eine Sicherung ersetzen; der Server darf nicht laufen",
    threadsExport: "die Unterhaltungen einer Person in einen Ordner schreiben",
    threadsImport: "Unterhaltungen aus einem exportierten Ordner anlegen",
    schedulesList: "Ihre Zeitpläne auflisten",
    schedulesPut: "einen Zeitplan anlegen oder ersetzen und seine nächsten Zeiten ausgeben",
    schedulesPreview: "die nächsten Zeiten eines Zeitplans ausgeben, ohne ihn zu speichern",
    schedulesRun: "jetzt einen Lauf eines Zeitplans starten und dessen Unterhaltung ausgeben",
    schedulesPause: "einen Zeitplan pausieren",
    schedulesContinue: "einen pausierten Zeitplan fortsetzen",
    schedulesDelete: "einen Zeitplan löschen",
    triggersList: "Ihre Auslöser auflisten",
    triggersPut: "einen Auslöser anlegen oder ersetzen und seine Adresse und sein neues Geheimnis ausgeben",
    triggersRotate: "einem Auslöser ein neues Geheimnis geben und es ausgeben",
    triggersTest: "den Lauf zeigen, den eine Lieferung starten würde",
    triggersDeliveries: "die letzten 20 Lieferungen eines Auslösers auflisten",
    triggersDelete: "einen Auslöser löschen",
    webhooksList: "Ihre Webhooks auflisten",
    webhooksPut: "einen Webhook anlegen oder ersetzen und sein neues Geheimnis ausgeben",
    webhooksRotate: "einem Webhook ein neues Geheimnis geben und es ausgeben",
    webhooksTest: "ein Muster an einen Webhook senden",
    webhooksDeliveries: "die letzten Zustellungen eines Webhooks auflisten",
    webhooksSend: "eine Zustellung eines Webhooks noch einmal senden",
    webhooksDelete: "einen Webhook mit seinen Zustellungen löschen",
  },
  options: {
    config: "Datei mit den Einstellungen des Servers [CONFIG_FILE, config/server.yaml]",
    agents: "Datei mit den Agenten [AGENTS_FILE, ./agents.yaml]",
    data: "Ordner der Datenbank und der Arbeitsbereiche [DATA_DIR, ./data]",
    port: "Port des Servers; 0 nimmt einen freien Port [PORT, 8000]",
    host: "Adresse des Servers [HOST, 127.0.0.1]",
    workers: "Prozesse, die sich den Port teilen, mit redis oder postgres [WORKERS, 1]",
    url: "Adresse des laufenden Servers; SKEIN_API_KEY ist sein Schlüssel oder Token [http://127.0.0.1:8000]",
    agent: "Agent; Vorgabe: der Agent der Unterhaltung oder der erste",
    user: "Person; nicht nötig bei AUTH=none",
    tenant: "Mandant der Person [default]",
    model: "Modell, etwa anthropic:claude-sonnet-5",
    thread: "Unterhaltung, die weitergeht; Vorgabe: eine neue",
    eventsAsJson: "die Ereignisse des Laufs als JSON ausgeben, eines je Zeile",
    temporary: "die Nachricht in einem neuen Thread senden, den der Server nach dem Lauf löscht",
    keyUser: "Person, der der Schlüssel gehört; erforderlich",
    scopes: "Rechte, durch Kommas getrennt: read, run, tools, admin, operator [read,run]",
    keyName: "Zweck des Schlüssels",
    expires: "Ablauf, etwa 90d, 12h oder 2031-01-31; Vorgabe: nie",
    keysOfTenant: "nur die Schlüssel dieses Mandanten auflisten",
    findingsAsJson: "Widersprüche als JSON ausgeben, einen je Zeile",
    resume: "einen unterbrochenen Import fortsetzen; vorhandene Unterhaltungen überspringen",
    scheduleInput: "Nachricht, mit der jeder Lauf beginnt; erforderlich",
    scheduleCron: "Zeiten als fünf Felder, etwa '0 9 * * MON-FRI'; oder --at",
    scheduleAt: "Zeit eines einzigen Laufs, etwa 2031-05-04T10:00:00+02:00",
    scheduleZone: "IANA-Zeitzone von --cron [UTC]",
    scheduleUntil: "Zeit, nach der der Zeitplan keinen Lauf startet",
    scheduleAgent: "Agent der Läufe; Vorgabe: der Standardagent",
    scheduleThread: "Unterhaltung, die alle Läufe fortsetzen; Vorgabe: je eine neue",
    scheduleOverlap: "wenn der letzte Lauf noch arbeitet: skip, queue, allow [skip]",
    scheduleCatchUp: "nach verpassten Zeiten starten: none, latest, all [latest]",
    scheduleQuestions: "wenn ein Lauf fragt: wait, deny [wait]",
    schedulePaused: "keinen Lauf starten, bis der Zeitplan fortgesetzt wird",
    triggerAgent: "Agent, den jede Lieferung startet; erforderlich",
    triggerScheme:
      "wie eine Lieferung geprüft wird: github, slack, stripe, standard-webhooks, hmac, token; erforderlich",
    triggerInput: "Nachricht des Laufs, etwa '{{body.issue.title}}'; erforderlich",
    triggerThread: "Lieferungen mit demselben Text teilen eine Unterhaltung; Vorgabe: je eine neue",
    triggerHeader: "Kopfzeile mit der Unterschrift oder dem Token, für hmac und token",
    triggerPrefix: "Text vor der Unterschrift, für hmac",
    triggerPaused: "bis zum nächsten put keine Lieferung annehmen",
    triggerSecret: "Datei mit dem Geheimnis des Absenders; sonst macht der Server eines",
    triggerBody: "Datei mit dem Inhalt einer Lieferung als JSON; erforderlich",
    webhookAddress: "Adresse, die die Ereignisse empfängt; erforderlich",
    webhookOn: "Ereignisse, durch Kommas getrennt [run.ended,run.failed]",
    webhookOnly: "Agenten, deren Ereignisse gesendet werden, durch Kommas getrennt; Vorgabe: alle",
    webhookOrdered: "die Ereignisse einer Unterhaltung der Reihe nach senden",
    webhookPaused: "bis zum nächsten put nichts senden",
    webhookStatus: "nur Zustellungen mit diesem Stand auflisten: pending, delivered, failed",
    webhookDelivery: "ID der Zustellung; erforderlich",
  },
  init: {
    exists: (dir, found) =>
      `${dir} enthält schon ${found}; nichts wurde geschrieben. Nennen Sie einen neuen Ordner: skein init meine-agenten`,
    wrote: (written, dir) => `${written} in ${dir} geschrieben. Weiter:`,
    otherTerminal: "in einem anderen Terminal",
    example: "Wirf zwei Würfel.",
    script: "Ohne Schlüssel spielt ein Skript das Modell; .env.example zeigt, wie Sie ein echtes einrichten.",
    fromCopy: (path) =>
      `package.json nimmt skein aus ${path}, weil diese Kopie nicht aus einer Registry stammt.`,
  },
  keys: {
    expiryInPast: "muss in der Zukunft liegen, etwa 90d, 12h, 2031-01-31 oder 2031-01-31T10:00:00Z",
    created: ({ id, user, tenant, scopes }, end) =>
      `Schlüssel ${id}: ${user} von ${tenant} darf ${scopes}, ${end}.\nDer Schlüssel wird nur einmal gezeigt. \`skein keys revoke ${id}\` widerruft ihn.`,
    until: (time) => `bis ${time}`,
    untilRevoked: "bis er widerrufen wird",
    generated:
      "Der Schlüssel ist nicht gespeichert. Starten Sie einen Server mit ihm als BOOTSTRAP_API_KEY: Er hat dann alle Rechte, als Person `admin`.",
    head: ["ID", "MANDANT", "PERSON", "RECHTE", "ERSTELLT", "STAND", "NAME"],
    states: { revoked: "widerrufen", valid: "gültig", until: "bis", expired: "abgelaufen" },
    unknown: "Es gibt keinen Schlüssel mit dieser ID. `skein keys list` zeigt alle Schlüssel.",
    revoked: (id) => `${id} ist widerrufen. Server nehmen den Schlüssel vielleicht noch einige Sekunden an.`,
  },
  schedules: {
    head: ["ID", "STAND", "ZEITEN", "NÄCHSTE", "LETZTE"],
    states: { active: "aktiv", paused: "pausiert", completed: "beendet" },
    outcomes: { started: "gestartet", skipped: "übersprungen", failed: "gescheitert" },
    stored: (id) => `${id} ist gespeichert. Die nächsten Zeiten:`,
    started: (run) => `Der Lauf ${run} ist gestartet. Seine Unterhaltung:`,
    paused: (id) => `${id} ist pausiert.`,
    continued: (id) => `${id} geht weiter.`,
    deleted: (id) => `${id} ist gelöscht. Die Läufe bleiben.`,
  },
  triggers: {
    head: ["ID", "AGENT", "VERFAHREN", "STAND", "ADRESSE"],
    deliveryHead: ["ZEIT", "LIEFERUNG", "ERGEBNIS", "UNTERHALTUNG", "LAUF", "GRUND"],
    states: { on: "aktiv", paused: "pausiert", noSecret: "ohne Geheimnis" },
    created: (id) =>
      `Geben Sie dem Absender die Adresse und das Geheimnis von ${id}. Das Geheimnis wird nur einmal gezeigt.`,
    stored: (id) => `${id} ist gespeichert. Die Adresse:`,
    noJson: (file) => `\`${file}\` enthält kein JSON.`,
    deleted: (id) => `${id} ist gelöscht.`,
  },
  webhooks: {
    head: ["ID", "EREIGNISSE", "STAND", "ADRESSE"],
    deliveryHead: ["ID", "EREIGNIS", "STAND", "VERSUCHE", "ERSTELLT", "LAUF", "FEHLER"],
    states: { on: "aktiv", paused: "pausiert", disabled: "abgeschaltet", failing: "schlägt fehl seit" },
    created: (id) =>
      `Der Webhook ${id} unterschreibt seine Zustellungen mit diesem Geheimnis. Es wird nur einmal gezeigt.`,
    replaced: (id) => `${id} ist ersetzt und behält sein Geheimnis.`,
    rotated: "Das Geheimnis wird nur einmal gezeigt. Das vorige unterschreibt noch 24 Stunden mit.",
    delivered: "Der Empfänger hat das Muster angenommen.",
    notDelivered: (why) => `Der Empfänger hat das Muster nicht angenommen: ${why}.`,
    sent: (id) => `${id} wird noch einmal gesendet.`,
    deleted: (id) => `${id} ist gelöscht.`,
  },
  backup: {
    exists: (dir) => `${dir} gibt es schon. Nennen Sie einen neuen Ordner.`,
    inProgress: (part, dir) =>
      `${part} gibt es schon: Eine andere Sicherung nach ${dir} läuft noch oder wurde abgebrochen. Warten Sie auf sie, oder löschen Sie ${part}.`,
    onServer: (path, count, bytes) =>
      `Die Sicherung liegt auf dem Rechner des Servers: ${path}, mit ${files(count, bytes)}.`,
    done: (count, bytes, dir) => `${files(count, bytes)} nach ${dir} gesichert.`,
    withoutSandboxes: (count) =>
      `Die Sicherung enthält nicht die Dateien von ${amount(count, "Sandbox", "Sandboxen")}, die in Volumes von Docker-Engines liegen. Sichern Sie sie auf den Rechnern der Engines.`,
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
    ownerMissing: "Nennen Sie die Person mit --user und --tenant.",
    notDurable:
      "STORE=memory bewahrt keine Unterhaltungen auf. Verwenden Sie STORE=sqlite, redis oder postgres.",
    exported: (count, written, dir) => `${threads(count)} mit ${messages(written)} nach ${dir} exportiert.`,
    folderExists: (path) => `${path} gibt es schon. Exportieren Sie in einen leeren Ordner.`,
    imported: (count, read, dir) => `${threads(count)} mit ${messages(read)} aus ${dir} importiert.`,
    skipped: (count) =>
      count === 1
        ? "1 vorhandene Unterhaltung wurde übersprungen."
        : `${number(count)} vorhandene Unterhaltungen wurden übersprungen.`,
    exists: (id) =>
      `Die Unterhaltung \`${id}\` gibt es schon. Der Import überschreibt keine; --resume überspringt sie.`,
    noFolder: (dir) => `${dir} ist kein lesbarer Ordner.`,
    incomplete: (file, fault) => `${file} ${fault}: Der Export dieser Unterhaltung ist unvollständig.`,
    missing: "fehlt",
    wrongId: (file, id) => `${file}: session_id muss der Name des Ordners sein, \`${id}\`.`,
    tooLarge: (file, mib) => `${file} ist größer als ${number(mib)} MiB.`,
    duplicate: (place, id) => `${place}: Die Nachricht \`${id}\` kommt zweimal vor.`,
    longLine: (place, mib) => `${place}: ist länger als ${number(mib)} MiB.`,
    tooDeep: (place, most, depth) =>
      `${place}: darf höchstens ${number(most)} Ebenen tief sein; es sind ${number(depth)} Ebenen.`,
    noJson: (place) => `${place}: muss JSON sein`,
    refused: "abgelehnt",
  },
  serve: {
    serves: (version, address, facts) => `Skein ${version} läuft auf ${address} (${facts}).`,
    workers: (count) => `${number(count)} Worker`,
    openOrTry: "Öffnen Sie die Adresse im Browser, oder versuchen Sie:",
    try: "Versuchen Sie:",
    asks: (model, reason) => `Der Standard-Agent verwendet ${model} (${reason}).`,
    isScript:
      "Dieses Modell ist ein Skript: Setzen Sie ANTHROPIC_API_KEY oder OPENAI_API_KEY, oder nennen Sie ein Modell in agents.yaml.",
    example: "Hallo, was kannst du?",
    closing:
      "Der Server wird beendet; laufende Läufe dürfen vorher enden. Noch einmal Strg-C beendet ihn sofort.",
  },
  chat: {
    noServer: (url) => `Unter ${url} antwortet kein Skein-Server. \`npm start\` startet einen.`,
    jsonNeedsMessage: "--json braucht eine Nachricht.",
    temporaryNeedsMessage: "--temporary braucht eine Nachricht und keinen --thread.",
    emptyMessage: "Die Nachricht ist leer.",
    longInput: (bytes) => `Die Eingabe ist länger als ${number(bytes)} Byte.`,
    noText: "Die Eingabe ist kein UTF-8-Text.",
    waits: (thread) => `(Der Lauf wartet auf eine Antwort: \`skein chat --thread ${thread}\`.)`,
    stopping: "hält an; noch einmal Strg-C, um nicht mehr zu folgen",
    stoppingAfterStep: "hält nach diesem Schritt an; noch einmal Strg-C, um sofort anzuhalten",
    left: "folgt nicht mehr; der Lauf geht vielleicht weiter",
    retrying: (reason) => `(${reason} Neuer Versuch; Strg-C bricht ab.)`,
    connectionFailed: (reason) => `Die Verbindung ist fehlgeschlagen: ${reason}`,
    thread: (id, url) => `Unterhaltung ${id} auf ${url}. /help zeigt die Befehle.`,
    toContinue: (thread) => `Fortsetzen: skein chat --thread ${thread}`,
    earlier: (count) => `(${amount(count, "frühere Nachricht", "frühere Nachrichten")})`,
    answers: (agent, model) => `${agent} antwortet, mit ${model}.`,
    noAgents: "Es gibt keinen Agenten.",
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
      help: "die Befehle zeigen",
      new: "eine neue Unterhaltung beginnen",
      threads: "die neuesten Unterhaltungen zeigen, oder eine nach Nummer oder ID öffnen",
      agent: "die Agenten zeigen, oder den Agenten wechseln",
      model: "die Modelle zeigen, oder das Modell wechseln; /model default: das des Agenten",
      quit: "beenden; ebenso Strg-D, und Strg-C in einer leeren Zeile",
      rest: "Alles andere ist eine Nachricht; ein Leerzeichen davor macht aus einem Befehl eine Nachricht.",
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
    noOption: "Das ist keine der Möglichkeiten. Noch einmal: ",
    connect: "[j]a, es ist verbunden, oder nein",
    args: "Argumente, als JSON: ",
    noObject: "Das ist kein JSON-Objekt. Noch einmal: ",
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
      superseded: "Eine neue Nachricht kam vor dem Ergebnis, auf das der Lauf wartete.",
      interrupt: "Der Lauf hielt nach einem Schritt an. Mit einer Nachricht geht es weiter.",
      refusal: "Das Modell hat die Antwort abgelehnt.",
      max_tokens: "Die Antwort endet an der Tokengrenze des Modells.",
      max_iterations:
        "Der Lauf hat so viele Modellaufrufe gemacht, wie der Agent darf. Mit einer Nachricht geht es weiter.",
      token_budget:
        "Der Lauf hat so viele Token verbraucht, wie der Agent darf. Mit einer Nachricht geht es weiter.",
      time_budget: "Der Lauf hat so lange gedauert, wie der Agent darf. Mit einer Nachricht geht es weiter.",
      loop_detected: "Der Lauf hat sich wiederholt. Mit einer Nachricht geht es weiter.",
      quota: "Das Kontingent ist verbraucht.",
    },
    ms: (ms) => `${number(ms)} ms`,
  },
};
