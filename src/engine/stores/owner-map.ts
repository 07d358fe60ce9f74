// A map with owners and names as keys. Entries of different owners never collide.

import type { Owner } from "../../protocol/ids.ts";

export class OwnerMap<V> {
  readonly #tenants = new Map<string, Map<string, Map<string, V>>>();

  get(owner: Owner, id: string): V | undefined {
    return this.#tenants.get(owner.tenant)?.get(owner.user)?.get(id);
  }

  set(owner: Owner, id: string, value: V): void {
    const users = childOf(this.#tenants, owner.tenant);
    childOf(users, owner.user).set(id, value);
  }

  delete(owner: Owner, id: string): void {
    const users = this.#tenants.get(owner.tenant);
    const values = users?.get(owner.user);
    values?.delete(id);
    if (values?.size === 0) users?.delete(owner.user);
    if (users?.size === 0) this.#tenants.delete(owner.tenant);
  }

  /** Returns all values of one owner, in insertion order. */
  of(owner: Owner): V[] {
    return [...(this.#tenants.get(owner.tenant)?.get(owner.user)?.values() ?? [])];
  }

  *values(): Generator<V> {
    for (const users of this.#tenants.values()) for (const values of users.values()) yield* values.values();
  }
}

function childOf<V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> {
  const child = map.get(key) ?? new Map<string, V>();
  map.set(key, child);
  return child;
}
