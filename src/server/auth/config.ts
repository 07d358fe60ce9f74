// The authentication settings, and the checks that involve several of them.

import { z } from "zod";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { HostName, isLoopback, Network, within } from "../../lib/hosts.ts";
import { Seconds } from "../../lib/units.ts";
import { BootstrapKey } from "./bootstrap-key.ts";

/** The built-in schemes. */
export const AuthScheme = z.enum(["none", "api_key", "jwt", "header"]);
export type AuthScheme = z.infer<typeof AuthScheme>;

/** The kinds of schemes that front ends see. The scheme of a plugin always appears as `plugin`. */
export const SchemeKind = z.enum([...AuthScheme.options, "plugin"]);
export type SchemeKind = z.infer<typeof SchemeKind>;

export const kindOf = (scheme: string): SchemeKind => AuthScheme.safeParse(scheme).data ?? "plugin";

/** A built-in scheme or a plugin's scheme. The server checks that it exists once the plugins are loaded. */
export const SchemeName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9_-]{0,63}$/,
    `must be one of ${AuthScheme.options.join(", ")}, or the name of a plugin's scheme`,
  );

/** Allows only algorithms that verify with a public key, because with a shared key, a verifier could also sign. */
export const JwtAlgorithm = z.enum([
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
]);

/** Requires https, because a response over plain HTTP could be forged. */
export const IssuerUrl = z.string().refine((text) => {
  const url = URL.parse(text);
  return url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(bare(url.hostname)));
}, "must be an https:// address; http:// is allowed only on this machine");
const bare = (hostname: string) => hostname.replace(/^\[(.*)\]$/, "$1");

const Claim = z.string().min(1).max(256);

export const JwtConfig = z.strictObject({
  jwks_url: IssuerUrl.describe("Address of the issuer's public keys: `https:`, or `http:` on this machine."),
  issuer: z.string().min(1).describe("Required `iss` of a token."),
  audience: z
    .string()
    .min(1)
    .describe("Required `aud` of a token, or an entry that its `aud` list must contain."),
  algorithms: z
    .array(JwtAlgorithm)
    .min(1)
    .default(JwtAlgorithm.options)
    .describe("Signature algorithms that the server accepts."),
  clock_tolerance: Seconds(300, (seconds) => seconds >= 0)
    .prefault("60s")
    .describe("Maximum clock difference between the issuer and the server, at most `5m`."),
  tenant_claim: Claim.default("tenant").describe(
    "Claim that contains the tenant. Dots separate the keys of nested claims, as in `realm_access.roles`.",
  ),
  user_claim: Claim.default("sub").describe("Claim that contains the user."),
  scopes_claim: Claim.default("scope").describe(
    "Claim that contains the scopes, as a list or a space-separated string. The server ignores unknown scopes.",
  ),
});
export type JwtConfig = z.output<typeof JwtConfig>;

/**
 * Signs users in on the page at `jwt.issuer`, with OpenID Connect: authorization code flow with PKCE, without a client
 * secret.
 */
export const OidcConfig = z.strictObject({
  client_id: z
    .string()
    .min(1)
    .max(256)
    .describe("The page's client id at the issuer. If it is set, people can sign in on the page."),
  scopes: z
    .string()
    .regex(/(^| )openid( |$)/, "must hold `openid`")
    .max(1024)
    .default("openid")
    .describe("Scopes that the page requests. With `offline_access` most issuers return a refresh token."),
  token: z
    .enum(["access_token", "id_token"])
    .default("access_token")
    .describe(
      "Token that the page sends. Its audience must be `auth.jwt.audience`. Use `id_token` if access tokens are not JWTs.",
    ),
});
export type OidcConfig = z.output<typeof OidcConfig>;

/** The value is a secret, so the error must not repeat it. */
export const TicketSecret = z
  .string()
  .min(32, "is too short: use at least 32 characters, for example from `openssl rand -hex 32`");

/** The environment may set part of the configuration. `authProblems` checks that it is complete. */
export const AuthConfig = z.strictObject({
  scheme: SchemeName.default("none").describe(
    "Authentication of callers: `none`, `api_key`, `jwt`, `header`, or the scheme of a plugin.",
  ),
  trusted_proxies: z
    .array(Network)
    .max(1000)
    .default([])
    .describe(
      "For `header`: addresses and networks of the gateways whose `X-Skein-*` headers the server trusts.",
    ),
  hosts: z
    .array(HostName)
    .max(100)
    .default([])
    .describe(
      "Host names that requests can use, in addition to the machine's own and the host of `public_url`.",
    ),
  external_operators: z
    .boolean()
    .default(false)
    .describe("Accepts the scope `operator` from JWTs and from the headers of a gateway."),
  bootstrap_key: BootstrapKey.optional().describe(
    "For `api_key`: the first key, created with `skein keys generate` and stored at startup.",
  ),
  on_revoked: z
    .enum(["continue", "cancel"])
    .default("continue")
    .describe("Action on an API key's runs when the key is revoked. `cancel` takes at most 5 s."),
  jwt: JwtConfig.partial().prefault({}),
  /** Applies to `jwt`. If it is not set, the page asks for a token. */
  oidc: OidcConfig.optional(),
  note: z
    .string()
    .trim()
    .min(1)
    .max(1000)
    .optional()
    .describe("Text that the page shows to people who sign in."),
  ticket_secret: TicketSecret.optional().describe(
    "Secret that signs stream tickets, at least 32 characters. Default: generated at startup and shared through Redis or PostgreSQL.",
  ),
});
export type AuthConfig = z.output<typeof AuthConfig>;

/**
 * Returns true if requests must name a known `Host`, because they need no credentials or because a gateway on this
 * machine is trusted. Otherwise, a page whose domain resolves to this machine could act on behalf of every user.
 */
export function checksHosts({ scheme, trusted_proxies, hosts }: AuthConfig): boolean {
  const isTrusted = within(trusted_proxies);
  const trustsThisMachine =
    isTrusted("127.0.0.1") ||
    isTrusted("::1") ||
    trusted_proxies.some((network) => isLoopback(network.split("/")[0] ?? ""));
  return scheme === "none" || hosts.length > 0 || (scheme === "header" && trustsThisMachine);
}

/**
 * Returns the reasons why a server must not listen at `host`, each with a fix, or an empty list if it may. `own` has
 * the names of the plugins' schemes, or is `any` before the plugins are loaded.
 */
export function authProblems(host: string, auth: AuthConfig, own: readonly string[] | "any" = []): string[] {
  const builtIn = AuthScheme.safeParse(auth.scheme).data;
  const settings = [...oidcProblems(auth), ...bootstrapProblems(auth)];
  if (builtIn) return [...PROBLEMS[builtIn](host, auth), ...settings];
  return [
    ...(own !== "any" && !own.includes(auth.scheme) ? [unknownScheme(auth.scheme, own)] : []),
    ...settings,
  ];
}

function unknownScheme(scheme: string, own: readonly string[]): string {
  const known = [...AuthScheme.options, ...own];
  return `auth.scheme: \`${scheme}\` must be one of ${known.map((name) => `\`${name}\``).join(", ")}${didYouMean(scheme, known)}`;
}

function bootstrapProblems({ scheme, bootstrap_key }: AuthConfig): string[] {
  if (bootstrap_key === undefined || scheme === "api_key") return [];
  return [`BOOTSTRAP_API_KEY requires AUTH=api_key, but AUTH is ${scheme}`];
}

function oidcProblems({ scheme, oidc, jwt }: AuthConfig): string[] {
  if (!oidc) return [];
  if (scheme !== "jwt") return [`auth.oidc requires AUTH=jwt, but AUTH is ${scheme}`];
  if (jwt.issuer === undefined || IssuerUrl.safeParse(jwt.issuer).success) return [];
  return [
    `auth.oidc: JWT_ISSUER, or \`auth.jwt.issuer\`, is \`${jwt.issuer}\`. To sign people in, it must be an https:// address; http:// is allowed only on this machine`,
  ];
}

/** The settings of the `jwt` scheme that have no default. */
const JWT_NEEDS = [
  {
    key: "jwks_url",
    variable: "JWT_JWKS_URL",
    what: "the address of the issuer's keys, such as https://login.example.com/.well-known/jwks.json",
  },
  {
    key: "issuer",
    variable: "JWT_ISSUER",
    what: "the `iss` of its tokens, such as https://login.example.com/",
  },
  { key: "audience", variable: "JWT_AUDIENCE", what: "the `aud` of tokens for this server, such as skein" },
] as const;

const PROBLEMS: Record<AuthScheme, (host: string, auth: AuthConfig) => string[]> = {
  none: (host) =>
    isLoopback(host)
      ? []
      : [
          `HOST=${host} is an address that other machines can reach, and there is no authentication: anyone could do anything.` +
            " Set AUTH=api_key and create a key, with `skein keys create` or in BOOTSTRAP_API_KEY. Or set AUTH=jwt, or AUTH=header" +
            " behind a gateway that authenticates. Or listen on this machine only, with HOST=127.0.0.1",
        ],
  api_key: () => [],
  jwt: (_host, { jwt }) =>
    JWT_NEEDS.filter(({ key }) => jwt[key] === undefined).map(
      ({ key, variable, what }) =>
        `AUTH=jwt requires ${variable}, or \`auth.jwt.${key}\` in server.yaml: ${what}`,
    ),
  header: (_host, { trusted_proxies }) =>
    trusted_proxies.length > 0
      ? []
      : [
          "AUTH=header requires TRUSTED_PROXIES: the addresses or networks of the trusted gateways," +
            " such as 10.0.0.5,10.1.0.0/16",
        ],
};
