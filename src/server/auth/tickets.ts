// Tickets. EventSource, links and images cannot send headers, so a page requests a ticket and adds it to the URL as
// `?ticket=…`. URLs end up in histories and logs, so a ticket allows one principal to read one path for one minute.
// Within that minute it can be used more than once, for example when EventSource reconnects, and with any process that
// has the same secret. A stream ends when the credentials behind its ticket end.

import { createHmac, hkdfSync, randomBytes } from "node:crypto";
import { z } from "zod";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { timingSafeEqualText } from "../../lib/text.ts";
import { unauthorized } from "./credentials.ts";
import type { Principal } from "./principal.ts";

const LIFETIME_MS = 60_000;
/** The maximum number of characters in a ticket. This server does not create longer tickets. */
const MAX_LENGTH = 8_192;

export interface Tickets {
  issue(principal: Principal, path: string): { ticket: string; expires_at: string };
  /**
   * Returns the ticket's principal. The credentials of that principal may have ended since the ticket was created.
   * Throws `unauthorized` if the ticket is forged, expired or for another path.
   */
  verify(ticket: string, path: string): Principal;
}

/**
 * The tenant, the user, the path, and the ticket's expiry in ms since 1970; then the API key and the expiry of the
 * credentials behind the ticket.
 */
const Content = z.tuple([
  z.string(),
  z.string(),
  z.string(),
  z.number(),
  z.string().nullable(),
  z.number().nullable(),
]);

/** Without a secret, uses a random one. Only this process then accepts its tickets. */
export function createTickets(secret: string | undefined, now: () => number = Date.now): Tickets {
  const key = Buffer.from(hkdfSync("sha256", secret ?? randomBytes(32), "", "skein stream tickets", 32));
  const sign = (content: string) => createHmac("sha256", key).update(content).digest("base64url");

  return {
    issue({ tenant, user, api_key = null, expires_at = null }, path) {
      const end = Math.min(now() + LIFETIME_MS, expires_at ?? Number.POSITIVE_INFINITY);
      const parts: z.input<typeof Content> = [tenant, user, path, end, api_key, expires_at];
      const content = Buffer.from(JSON.stringify(parts)).toString("base64url");
      return { ticket: `${content}.${sign(content)}`, expires_at: new Date(end).toISOString() };
    },

    verify(ticket, path) {
      const [content = ""] = ticket.split(".", 1);
      if (ticket.length > MAX_LENGTH || !timingSafeEqualText(ticket, `${content}.${sign(content)}`))
        throw refused();
      const parts = Content.safeParse(JSON.parse(Buffer.from(content, "base64url").toString()));
      // A process of another version signed the ticket.
      if (!parts.success) throw refused();
      const [tenant, user, own, end, api_key, expires_at] = parts.data;
      if (own !== path || !(now() < end)) throw refused();
      return {
        tenant,
        user,
        scopes: ["read"],
        ...omitUndefined({ api_key: api_key ?? undefined, expires_at: expires_at ?? undefined }),
      };
    },
  };
}

const refused = () => unauthorized("The ticket has expired or is not valid for this path. Get a new one.");
