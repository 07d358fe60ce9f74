// The ways to learn who is asking. One more is one file and one line.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { within } from "../../lib/hosts.ts";
import { authenticateApiKey } from "./api-key.ts";
import type { ApiKeyStore } from "./api-keys.ts";
import { type AuthConfig, type AuthScheme, JwtConfig } from "./config.ts";
import { type Authenticate, onlyHeader, unauthorized } from "./credentials.ts";
import { authenticateJwt } from "./jwt.ts";
import { type Principal, Scope } from "./principal.ts";

const schemes = {
  none: () => authenticateNobody(),
  api_key(_, keys) {
    if (!keys) throw new AppError("internal", "API keys are asked for, and there is no store of them.");
    return authenticateApiKey(keys);
  },
  jwt: ({ jwt }) => authenticateJwt(JwtConfig.parse(jwt)),
  header: ({ trusted_proxies }) => authenticateHeaders(trusted_proxies),
} satisfies Record<AuthScheme, (config: AuthConfig, keys: ApiKeyStore | undefined) => Authenticate>;

/** For a configuration in which `authProblems` finds none. `keys` are needed for API keys only. */
export function createAuthenticate(config: AuthConfig, keys: ApiKeyStore | undefined): Authenticate {
  return schemes[config.scheme](config, keys);
}

// Who sends a request is whom a gateway says that it authenticated. The gateway must remove these headers from what
// it is sent, and is believed by the address of its own socket, which nobody can write into a header.
/** Printable ASCII without the comma, with which a gateway may have joined two headers. */
const Name = z.string().regex(/^[!-+\--~]{1,256}$/);
const Scopes = z
  .string()
  .max(256)
  .transform((text) => text.split(/[ ,]+/))
  .pipe(z.array(Scope));

export function authenticateHeaders(trustedProxies: readonly string[]): Authenticate {
  const isTrusted = within(trustedProxies);

  return async (request) => {
    const { remoteAddress } = request.raw.socket;
    if (remoteAddress === undefined || !isTrusted(remoteAddress))
      throw unauthorized("This server is reached through its gateway, which authenticates; not directly.");
    return {
      tenant: read(request, "x-skein-tenant", Name),
      user: read(request, "x-skein-user", Name),
      scopes: read(request, "x-skein-scopes", Scopes),
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

// No authentication: everybody is the same user and may do everything. The server then listens on this machine only,
// and answers nobody who came here under another name.
const EVERYBODY: Principal = { tenant: "default", user: "default", scopes: Scope.options };

export function authenticateNobody(): Authenticate {
  return async () => EVERYBODY;
}
