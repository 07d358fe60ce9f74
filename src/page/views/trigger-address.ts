// The address that a sender calls.

import { baseUrl } from "../session.ts";

/** The server sends only a path if the operator has not set its public address. */
export const addressOf = (url: string): string => (url.startsWith("/") ? `${baseUrl}${url}` : url);
