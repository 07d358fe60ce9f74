// Under which name tenants and users are counted. JSON escapes whatever could make two of them look alike.

import type { Owner } from "../core/ids.ts";
import type { PerScope } from "../quotas/store.ts";

export function namesOf({ tenant, user }: Owner): PerScope<string> {
  return { tenant: JSON.stringify([tenant]), user: JSON.stringify([tenant, user]) };
}
