// The texts, in each language, of the pages on which a person connects an account.

import { REFUSALS } from "../../engine/vault/oauth/parts.ts";

export const LANGUAGES = ["en", "de"] as const;
export type PageLanguage = (typeof LANGUAGES)[number];

/** The messages with which these pages themselves refuse a request. */
export const PAGE_REFUSALS = {
  otherUser: "This address is for another user of Skein than the one who is signed in here.",
  noCookie:
    "This browser did not open the Skein address first, or it does not keep cookies. Open the address again in this browser.",
  incomplete: "This address is incomplete. Ask for a new one.",
} as const;

/** All parameters are HTML. `by` is the user who connects the account of a tenant. */
interface Texts {
  readonly connect: string;
  readonly connected: string;
  readonly failed: string;
  readonly go: string;
  readonly ask: string;
  readonly close: string;
  /** Precedes the reason for a refusal, which is only in English. */
  readonly reason: string;
  /** Precedes a message, in English, that is not written for this page. */
  readonly unknown: string;
  willBeUsed(server: string, whose: string): string;
  isUsed(server: string, whose: string): string;
  user(user: string, tenant: string): string;
  allUsers(tenant: string, by: string): string;
  userOf(user: string, tenant: string): string;
  /** Returns a refusal in this language. Returns undefined for a message that is not written for this page. */
  refusal(message: string): string | undefined;
}

/** The refusals that exist in every language. */
const OWN: ReadonlySet<string> = new Set([...Object.values(REFUSALS), ...Object.values(PAGE_REFUSALS)]);

const en: Texts = {
  connect: "Connect an account",
  connected: "The account is connected",
  failed: "The account was not connected",
  go: "Continue",
  ask: "Continue only if you asked for this yourself, in Skein. Otherwise, others could use your account.",
  close: "You can close this page. A conversation that waited for the account continues.",
  reason: "Reason, for your admin:",
  unknown: "Tell your admin:",
  willBeUsed: (server, whose) => `The account at ${server} will be used by ${whose}.`,
  isUsed: (server, whose) => `The account at ${server} is now used by ${whose}.`,
  user: (user, tenant) => `the Skein user ${user} of the tenant ${tenant}`,
  allUsers: (tenant, by) => `all Skein users of the tenant ${tenant}, for which ${by} connects it`,
  userOf: (user, tenant) => `${user} of the tenant ${tenant}`,
  refusal: (message) => (OWN.has(message) ? message : undefined),
};

const GERMAN: Readonly<Record<string, string>> = {
  [REFUSALS.gone]: "Diese Adresse wurde schon verwendet oder ist abgelaufen. Fordern Sie eine neue an.",
  [REFUSALS.otherBrowser]:
    "Das Konto wurde nicht verbunden, weil ein anderer Browser begonnen hat. Öffnen Sie die Adresse von Skein noch einmal in diesem Browser.",
  [REFUSALS.otherIssuer]:
    "Das Konto wurde nicht verbunden, weil die Antwort nicht vom erwarteten Server kommt.",
  [REFUSALS.declined]:
    "Das Konto wurde nicht verbunden, weil Sie abgelehnt haben. Sie können es noch einmal versuchen.",
  [REFUSALS.refused]:
    "Das Konto wurde nicht verbunden, weil sein Autorisierungsserver die Anfrage abgelehnt hat.",
  [REFUSALS.notExchanged]:
    "Das Konto wurde nicht verbunden, weil sein Autorisierungsserver keine Tokens dafür ausgestellt hat. Versuchen Sie es noch einmal.",
  [REFUSALS.notStored]:
    "Das Konto wurde nicht verbunden, weil seine Tokens eine Form haben, die nicht gespeichert werden kann.",
  [PAGE_REFUSALS.otherUser]:
    "Diese Adresse ist für eine andere Person in Skein als die, die hier angemeldet ist.",
  [PAGE_REFUSALS.noCookie]:
    "Dieser Browser hat die Adresse von Skein nicht zuerst geöffnet, oder er behält keine Cookies. Öffnen Sie die Adresse noch einmal in diesem Browser.",
  [PAGE_REFUSALS.incomplete]: "Diese Adresse ist unvollständig. Fordern Sie eine neue an.",
};

const de: Texts = {
  connect: "Konto verbinden",
  connected: "Das Konto ist verbunden",
  failed: "Das Konto wurde nicht verbunden",
  go: "Weiter",
  ask: "Fahren Sie nur fort, wenn Sie dies selbst in Skein angefordert haben. Sonst könnten andere Ihr Konto verwenden.",
  close: "Sie können diese Seite schließen. Ein Gespräch, das auf das Konto gewartet hat, geht weiter.",
  reason: "Begründung für Ihren Admin, auf Englisch:",
  unknown: "Teilen Sie Ihrem Admin diese englische Meldung mit:",
  willBeUsed: (server, whose) => `Das Konto bei ${server} wird verwendet für ${whose}.`,
  isUsed: (server, whose) => `Das Konto bei ${server} wird jetzt verwendet für ${whose}.`,
  user: (user, tenant) => `${user} beim Mandanten ${tenant} in Skein`,
  allUsers: (tenant, by) => `alle Personen des Mandanten ${tenant} in Skein, für den es ${by} verbindet`,
  userOf: (user, tenant) => `${user} vom Mandanten ${tenant}`,
  refusal: (message) => GERMAN[message],
};

export const textsIn = (language: PageLanguage): Texts => ({ en, de })[language];

/** Returns the language that `Accept-Language` prefers, or English if the header lists none of these languages. */
export function languageOf(accepted = ""): PageLanguage {
  const wanted = accepted.split(",").flatMap((each) => {
    const [, tag = "", weight = "1"] =
      /^\s*([a-z]{1,8})(?:-[a-z0-9-]*)?\s*(?:;\s*q=([0-9.]{1,5}))?\s*$/i.exec(each) ?? [];
    const language = LANGUAGES.find((one) => one === tag.toLowerCase());
    return language && Number(weight) > 0 ? [{ language, weight: Number(weight) }] : [];
  });
  return wanted.toSorted((a, b) => b.weight - a.weight)[0]?.language ?? "en";
}
