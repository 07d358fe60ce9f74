// The texts of the page, in the reader's language. Numbers, dates and lists use the same language. Independent of the
// DOM.

import { en, type Texts } from "./texts/en.ts";

/** `locale` is for `Intl`. It includes the browser's region if the browser and the page use the same language. */
let current: { readonly texts: Texts; readonly locale: string } = { texts: en, locale: "en" };

/**
 * Returns the texts, for example `t().settings.title`. Call this while drawing, because modules are loaded before the
 * texts of the language.
 */
export const t = (): Texts => current.texts;

export const locale = (): string => current.locale;

/** Call this before anything is drawn. */
export function speak(texts: Texts, locale: string): void {
  current = { texts, locale };
}

/** Returns a value that depends on the language. It is created on first use. */
export function once<T>(make: (locale: string) => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make(current.locale) };
    return made.value;
  };
}
