// The language and locale of the terminal, as set in the environment, and the formatting of numbers, amounts and dates
// in that locale.

const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];

export interface Locale {
  readonly language: Language;
  /** A tag for `Intl`, such as `de-DE`. */
  readonly tag: string;
}

/**
 * Reads the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set, such as `de_DE.UTF-8`. Falls back to English for
 * other languages.
 */
export function localeOf({ LC_ALL, LC_MESSAGES, LANG }: NodeJS.ProcessEnv): Locale {
  const named = LC_ALL || LC_MESSAGES || LANG || "";
  const [, written, region] = /^([a-z]{2})(?:_([A-Z]{2}))?(?:[.@]|$)/.exec(named) ?? [];
  const language = LANGUAGES.find((each) => each === written);
  if (language === undefined) return { language: "en", tag: "en" };
  return { language, tag: region === undefined ? language : `${language}-${region}` };
}

export const { language, tag } = localeOf(process.env);

/** `1,234` */
export const number = (value: number): string => new Intl.NumberFormat(tag).format(value);

/** `1 file` or `1,234 files` */
export const amount = (count: number, one: string, other: string): string =>
  `${number(count)} ${new Intl.PluralRules(tag).select(count) === "one" ? one : other}`;

/** `Jan 31, 2031, 10:00 AM UTC`, in this machine's time zone. */
export const date = (iso: string): string =>
  new Intl.DateTimeFormat(tag, {
    ...{ year: "numeric", month: "short", day: "numeric" },
    ...{ hour: "2-digit", minute: "2-digit", timeZoneName: "short" },
  }).format(new Date(iso));
