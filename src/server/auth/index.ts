// The authentication schemes. A new scheme needs a file and a line in `schemes`.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { within } from "../../lib/hosts.ts";
import { authenticateApiKey } from "./api-key.ts";
import type { ApiKeyStore } from "./api-keys.ts";
import { type AuthConfig, AuthScheme, JwtConfig } from "./config.ts";
import { type Authenticate, onlyHeader, unauthorized } from "./credentials.ts";
import { authenticateJwt } from "./jwt.ts";
import { authenticateBy, type OwnScheme } from "./own-scheme.ts";
import { type Principal, Scope } from "./principal.ts";

type FindKey = ApiKeyStore["find"];

const schemes = {
  none: () => authenticateAsDefault(),
  api_key(_, findKey) {
    if (!findKey) throw new AppError("internal", "The scheme `api_key` needs a store of API keys.");
    return authenticateApiKey(findKey);
  },
  jwt: ({ jwt, ...config }) => limited(config, authenticateJwt(JwtConfig.parse(jwt))),
  header: ({ trusted_proxies, ...config }) => limited(config, authenticateHeaders(trusted_proxies)),
} satisfies Record<AuthScheme, (config: AuthConfig, findKey: FindKey | undefined) => Authenticate>;

/** The token issuer may not be the operator of this server. */
function limited(
  { external_operators: mayOperate }: Pick<AuthConfig, "external_operators">,
  authenticate: Authenticate,
): Authenticate {
  if (mayOperate) return authenticate;
  return async (request) => {
    const principal = await authenticate(request);
    return { ...principal, scopes: principal.scopes.filter((scope) => scope !== "operator") };
  };
}

/**
 * The configuration must have passed `authProblems`. Only API keys need `findKey`, and only a plugin's scheme needs
 * `own`.
 */
export function createAuthenticate(
  config: AuthConfig,
  findKey: FindKey | undefined,
  own?: OwnScheme | undefined,
): Authenticate {
  const builtIn = AuthScheme.safeParse(config.scheme).data;
  if (builtIn) return schemes[builtIn](config, findKey);
  if (own?.name === config.scheme) return authenticateBy(own);
  throw new AppError("internal", `There is no authentication scheme \`${config.scheme}\`.`);
}

/** Printable ASCII without the comma, because a gateway may join two headers with a comma. */
const Name = z.string().regex(/^[!-+\--~]{1,256}$/);
const Scopes = z
  .string()
  .max(256)
  .transform((text) => text.split(/[ ,]+/))
  .pipe(z.array(Scope));

/**
 * Trusts the headers of a gateway, which it identifies by its socket address. The gateway must strip these headers from
 * the requests that it receives.
 */
export function authenticateHeaders(trustedProxies: readonly string[]): Authenticate {
  const isTrusted = within(trustedProxies);

  return async (request) => {
    const { remoteAddress } = request.raw.socket;
    if (remoteAddress === undefined || !isTrusted(remoteAddress))
      throw unauthorized("This server accepts requests from its gateway only. Send them to the gateway.");
    return {
      tenant: read(request, "x-skein-tenant", Name),
      user: read(request, "x-skein-user", Name),
      scopes: read(request, "x-skein-scopes", Scopes),
      isGateway: true,
    };
  };
}

function read<S extends z.ZodType>(request: FastifyRequest, name: string, schema: S): z.output<S> {
  const checked = schema.safeParse(onlyHeader(request, name));
  if (checked.success) return checked.data;
  throw unauthorized(`The gateway must send the header \`${name}\`${WORDS[name] ?? ""}.`);
}

const OF_NAME = ": 1 to 256 printable ASCII characters without spaces and commas";
const WORDS: Readonly<Record<string, string>> = {
  "x-skein-tenant": OF_NAME,
  "x-skein-user": OF_NAME,
  "x-skein-scopes": `: one or more of ${Scope.options.join(", ")}`,
};

/**
 * Without authentication, every request has the same user, with all scopes. The server then accepts local requests
 * only.
 */
const DEFAULT_USER: Principal = { tenant: "default", user: "default", scopes: Scope.options };

export function authenticateAsDefault(): Authenticate {
  return async () => DEFAULT_USER;
}
