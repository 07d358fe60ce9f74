// The page's language, which is the user's choice or the browser's language.

import { en, type Texts } from "./texts/en.ts";
import { locale, speak } from "./texts.ts";

/**
 * The page's languages, each with its name in that language and a loader for its texts. The first language is part of
 * the page.
 */
const LANGUAGES = {
  en: { name: "English", read: async (): Promise<Texts> => en },
  de: { name: "Deutsch", read: async (): Promise<Texts> => (await import("./texts/de.ts")).de },
} as const;

export type Language = keyof typeof LANGUAGES;
export const languages = Object.keys(LANGUAGES) as Language[];
export const nameOf = (language: Language): string => LANGUAGES[language].name;

const SETTING = "skein.language";

/** Returns the user's choice. `system` means the first language of the browser that the page supports. */
export const language = (): Language | "system" =>
  languages.find((each) => each === localStorage.getItem(SETTING)) ?? "system";

/** Stores the choice and reloads the page in that language. */
export function setLanguage(chosen: Language | "system"): void {
  if (chosen === "system") localStorage.removeItem(SETTING);
  else localStorage.setItem(SETTING, chosen);
  location.reload();
}

/** Call this before anything is drawn. Falls back to English if the texts cannot be loaded. */
export async function readTexts(): Promise<void> {
  const chosen = language();
  const spoken = navigator.languages.find((each) => languages.some((known) => isOf(each, known)));
  const name = chosen === "system" ? (languages.find((each) => isOf(spoken ?? "en", each)) ?? "en") : chosen;
  try {
    const texts = await LANGUAGES[name].read();
    speak(texts, navigator.languages.find((each) => isOf(each, name)) ?? name);
  } catch {}
  document.documentElement.lang = locale();
}

const isOf = (tag: string, name: string): boolean => tag.split("-")[0]?.toLowerCase() === name;
