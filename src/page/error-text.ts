// Turns an error of the server into the text that the page shows.

import { t } from "./texts.ts";

interface ServerError {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/**
 * Returns a sentence in the page's language with the server's own message below it; without such a sentence, only the
 * server's message.
 */
export function errorText({ code = "", message = "" }: ServerError): string {
  const sentence = t().errors[code];
  return sentence ? `${sentence}\n${message}` : message;
}
