// Stream tickets. A browser's EventSource sends no headers, so its page asks for a ticket first and puts it into the
// address: `?ticket=…`. A ticket opens one path, to read, for one principal, for a minute. Within that minute it may
// be used again, as EventSource does by itself after a break; any process with the same secret takes it.
//
// Addresses end up in histories and in the logs of gateways: that is why it is worth so little, and so briefly.

import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { z } from "zod";
import { timingSafeEqualText } from "../../lib/text.ts";
import { unauthorized } from "./credentials.ts";
import type { Principal } from "./principal.ts";

const LIFETIME_MS = 60_000;
/** Longer than the longest names and path make one. */
const MAX_LENGTH = 8_192;

export interface Tickets {
  issue(principal: Principal, path: string): { ticket: string; expires_at: string };
  /** Whose ticket it is. Throws `unauthorized` when it is none, is over, or is for another path. */
  verify(ticket: string, path: string): Principal;
}

/** tenant, user, path, and when it is over, in ms since 1970 */
const Content = z.tuple([z.string(), z.string(), z.string(), z.number()]);

/** Without a secret, one is made: then only this process takes its tickets, until it ends. */
export function createTickets(secret: string | undefined, now: () => number = Date.now): Tickets {
  const key = Buffer.from(hkdfSync("sha256", secret ?? randomBytes(32), "", "skein stream tickets", 32));
  const sign = (content: string) => createHmac("sha256", key).update(content).digest("base64url");

  return {
    issue({ tenant, user }, path) {
      const end = now() + LIFETIME_MS;
      const content = Buffer.from(JSON.stringify([tenant, user, path, end])).toString("base64url");
      return { ticket: `${content}.${sign(content)}`, expires_at: new Date(end).toISOString() };
    },

    verify(ticket, path) {
      const [content = ""] = ticket.split(".", 1);
      if (ticket.length > MAX_LENGTH || !timingSafeEqualText(ticket, `${content}.${sign(content)}`))
        throw refused();
      const [tenant, user, own, end] = Content.parse(
        JSON.parse(Buffer.from(content, "base64url").toString()),
      );
      if (own !== path || !(now() < end)) throw refused();
      return { tenant, user, scopes: ["read"] };
    },
  };
}

const refused = () => unauthorized("The ticket is not valid for this path, or not any more. Get a new one.");
