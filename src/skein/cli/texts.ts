// The texts of the terminal, in the language that the environment selects.

import { type Language, language } from "./locale.ts";
import { de } from "./texts/de.ts";
import { en, type Texts } from "./texts/en.ts";

const TEXTS: Readonly<Record<Language, Texts>> = { en, de };

/** Returns the texts, for example `t().chat.noThreads`. */
export const t = (): Texts => TEXTS[language];
