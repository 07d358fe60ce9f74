// The texts about the sources of an answer, in each language. They are loaded with the conversation.

import { locale } from "../texts.ts";

const en = {
  title: (items: number, count: string) => (items === 1 ? "1 page was read" : `${count} pages were read`),
  more: (count: string) => `${count} more`,
};

const de: typeof en = {
  title: (items, count) => (items === 1 ? "1 Seite wurde gelesen" : `${count} Seiten wurden gelesen`),
  more: (count) => `${count} weitere`,
};

export const sourceTexts = (): typeof en => (locale().startsWith("de") ? de : en);
