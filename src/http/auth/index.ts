// The ways to learn who is asking. One more is one file and one line.

import { AppError } from "../../core/errors.ts";
import { authenticateApiKey } from "./api-key.ts";
import type { ApiKeyStore } from "./api-keys.ts";
import { type AuthConfig, type AuthScheme, JwtConfig } from "./config.ts";
import type { Authenticate } from "./credentials.ts";
import { authenticateHeaders } from "./header.ts";
import { authenticateJwt } from "./jwt.ts";
import { authenticateNobody } from "./none.ts";

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
