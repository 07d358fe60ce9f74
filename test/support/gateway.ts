// A server behind a gateway, which says in headers who is asking.

/** How such a server is configured. */
export const BEHIND_GATEWAY = {
  auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
  backends: { allow_local: true },
};

/** What the gateway says of a user of the tenant `acme`. */
export const asUser = (user: string, scopes = "read,run") => ({
  "x-skein-tenant": "acme",
  "x-skein-user": user,
  "x-skein-scopes": scopes,
});
