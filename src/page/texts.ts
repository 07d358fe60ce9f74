// The words of the page, in the language of the person who reads it. Numbers, dates and lists have the same language. No DOM.

import { en, type Texts } from "./texts/en.ts";

/** `locale` is for `Intl`: its region comes from the browser where that speaks the language of the page. */
let current: { readonly texts: Texts; readonly locale: string } = { texts: en, locale: "en" };

/** The words: `t().settings.title`. Called when something is drawn, since a module is read before its language is. */
export const t = (): Texts => current.texts;

export const locale = (): string => current.locale;

/** To be called before anything is drawn. */
export function speak(texts: Texts, locale: string): void {
  current = { texts, locale };
}

/** A value that depends on the language, made when it is first used. */
export function once<T>(make: (locale: string) => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make(current.locale) };
    return made.value;
  };
}
