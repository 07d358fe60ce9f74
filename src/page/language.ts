// Which language the page has: the person's choice, or the browser's.

import { en, type Texts } from "./texts/en.ts";
import { locale, speak } from "./texts.ts";

/** A language by its own name, and its words; those of the first come with the page. */
const LANGUAGES = {
  en: { name: "English", read: async (): Promise<Texts> => en },
  de: { name: "Deutsch", read: async (): Promise<Texts> => (await import("./texts/de.ts")).de },
} as const;

export type Language = keyof typeof LANGUAGES;
export const languages = Object.keys(LANGUAGES) as Language[];
export const nameOf = (language: Language): string => LANGUAGES[language].name;

const SETTING = "skein.language";

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
    speak(texts, navigator.languages.find((each) => isOf(each, name)) ?? name);
  } catch {}
  document.documentElement.lang = locale();
}

const isOf = (tag: string, name: string): boolean => tag.split("-")[0]?.toLowerCase() === name;
