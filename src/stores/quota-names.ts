// The names under which tenants and users are counted: JSON, so that no two collide.

import type { Owner } from "../core/ids.ts";
import type { PerScope } from "../quotas/store.ts";

export function namesOf({ tenant, user }: Owner): PerScope<string> {
  return { tenant: JSON.stringify([tenant]), user: JSON.stringify([tenant, user]) };
}
