// The words of the page, in the language of the person who reads it. Numbers, dates and lists have the same language.

import { en, type Texts } from "./texts/en.ts";

/** A language by its own name, and its words; those of the first come with the page. */
const LANGUAGES = {
  en: { name: "English", read: async (): Promise<Texts> => en },
  de: { name: "Deutsch", read: async (): Promise<Texts> => (await import("./texts/de.ts")).de },
} as const;

export type Language = keyof typeof LANGUAGES;
export const languages = Object.keys(LANGUAGES) as Language[];
export const nameOf = (language: Language): string => LANGUAGES[language].name;

const SETTING = "skein.language";

/** `locale` is for `Intl`: its region comes from the browser where that speaks the language of the page. */
let current: { texts: Texts; locale: string } = { texts: en, locale: "en" };

/** The words: `t().settings.title`. Called when something is drawn, since a module is read before its language is. */
export const t = (): Texts => current.texts;

/** What the person chose; `system` is the first language of the browser that the page has. */
export const language = (): Language | "system" =>
  languages.find((each) => each === localStorage.getItem(SETTING)) ?? "system";

/** The page is read again in that language. */
export function setLanguage(chosen: Language | "system"): void {
  if (chosen === "system") localStorage.removeItem(SETTING);
  else localStorage.setItem(SETTING, chosen);
  location.reload();
}

/** To be called before anything is drawn. English where the words cannot be fetched. */
export async function readTexts(): Promise<void> {
  const chosen = language();
  const spoken = navigator.languages.find((each) => languages.some((known) => isOf(each, known)));
  const name = chosen === "system" ? (languages.find((each) => isOf(spoken ?? "en", each)) ?? "en") : chosen;
  try {
    const texts = await LANGUAGES[name].read();
    current = { texts, locale: navigator.languages.find((each) => isOf(each, name)) ?? name };
  } catch {}
  document.documentElement.lang = current.locale;
}

const isOf = (tag: string, name: string): boolean => tag.split("-")[0]?.toLowerCase() === name;

/** A value that depends on the language, made when it is first used. */
export function once<T>(make: (locale: string) => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make(current.locale) };
    return made.value;
  };
}
