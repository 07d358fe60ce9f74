// The sender of a request and their scopes. Every authentication scheme returns a principal.

import { z } from "zod";
import type { Owner } from "../../protocol/ids.ts";

/**
 * The rights of a principal. `read`: read the owner's data. `run`: change the owner's data and start runs. `tools`:
 * manage the tenant's tools. `admin`: manage all users of the tenant. `operator`: manage all tenants. No scope includes
 * another.
 */
export const Scope = z.enum(["run", "read", "tools", "admin", "operator"]);
export type Scope = z.infer<typeof Scope>;

/** A principal can find only resources of the same owner. */
export interface Principal extends Owner {
  readonly scopes: readonly Scope[];
  /** The time at which the credentials expire, in ms since 1970. */
  readonly expires_at?: number | undefined;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  /** True if the operator's gateway sent the request. */
  readonly isGateway?: boolean;
}

/** The name of a tenant or a user in credentials. Invisible characters are refused, so no two names look alike. */
export const OwnerName = z
  .string()
  .regex(
    /^[^\s\p{C}]{1,256}$/u,
    "must be 1 to 256 characters without spaces, line breaks and others that cannot be seen",
  );
