// Converts a server error to the text that the page shows.

import { t } from "./texts.ts";

interface ServerError {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/**
 * Returns a sentence in the page's language, followed by the server's message. If there is no such sentence, returns
 * only the server's message.
 */
export function errorText({ code = "", message = "" }: ServerError): string {
  const sentence = t().errors[code];
  return sentence ? `${sentence}\n${message}` : message;
}
