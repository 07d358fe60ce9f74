// Who sends a request, and what they may do. Every scheme of authentication yields one for a request.

import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";

/**
 * What a principal may do. `read`: read what its owner has. `run`: change it, and start runs. `tools`: manage the tenant's tools.
 * `admin`: manage all users of the tenant. `operator`: manage all tenants. No scope contains another.
 */
export const Scope = z.enum(["run", "read", "tools", "admin", "operator"]);
export type Scope = z.infer<typeof Scope>;

/** A principal finds only what its own owner has. */
export interface Principal extends Owner {
  readonly scopes: readonly Scope[];
  /** When the credentials expire, in ms since 1970. */
  readonly expires_at?: number | undefined;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  /** Whether a gateway of the operator sends the request. */
  readonly isGateway?: boolean;
}

/** A tenant or a user as credentials name them: without invisible characters, so that no two look alike. */
export const OwnerName = z
  .string()
  .regex(
    /^[^\s\p{C}]{1,256}$/u,
    "must be 1 to 256 characters without spaces, line breaks and others that cannot be seen",
  );
