// Turns an error of the server into the text that the page shows.

import { t } from "./texts.ts";

interface ServerError {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** A sentence in the language of the page, then the server's own words in a line below. Without a sentence: only its words. */
export function errorText({ code = "", message = "" }: ServerError): string {
  const sentence = t().errors[code];
  return sentence ? `${sentence}\n${message}` : message;
}
