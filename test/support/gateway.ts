// A server behind a gateway, which says in headers who is asking.

import { createClient } from "../../src/client/client.ts";

/** How such a server is configured. */
export const BEHIND_GATEWAY = {
  auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
  backends: { allow_local: true },
};

/** What the gateway says of a user. */
export const asUser = (user: string, scopes = "read,run", tenant = "acme") => ({
  "x-skein-tenant": tenant,
  "x-skein-user": user,
  "x-skein-scopes": scopes,
});

/** The clients of the users of such a server. */
export const clientsAt =
  (url: string, usual = "read,run") =>
  (user: string, tenant = "acme", scopes = usual) =>
    createClient({ baseUrl: url, headers: asUser(user, scopes, tenant) });
