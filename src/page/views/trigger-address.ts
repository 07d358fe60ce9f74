// The URL that a sender calls.

import { baseUrl } from "../session.ts";

/** The server returns only a path if the operator has not set its public URL. */
export const addressOf = (url: string): string => (url.startsWith("/") ? `${baseUrl}${url}` : url);
