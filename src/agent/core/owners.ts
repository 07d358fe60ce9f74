// The port to who has anything in a store: for operators, who look over all users. No request of a user reaches it.

import type { Owner } from "../../protocol/ids.ts";
import type { Shelf } from "./items.ts";

/**
 * Those who have threads, each once, in an order that never changes: who comes or goes between two calls moves no one
 * else. One whose last thread was deleted recently may still be listed.
 */
export interface Owners {
  /** Up to `limit` tenants, those behind the tenant `after`; fewer only when there are no more. */
  tenants(query: { readonly limit: number; readonly after?: string | undefined }): Promise<string[]>;
  /** Up to `limit` owners, those behind `after`, of one tenant or of all; fewer only when there are no more. */
  list(query: {
    readonly limit: number;
    readonly after?: Owner | undefined;
    readonly tenant?: string | undefined;
  }): Promise<Owner[]>;
  /** Where items are kept with the owner's agents. */
  shelves(owner: Owner): Promise<Shelf[]>;
}
