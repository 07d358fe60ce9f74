// The port to the owners of stored data, for operators who manage all users. User requests never reach it.

import type { Owner } from "../../protocol/ids.ts";
import type { Shelf } from "./items.ts";

/**
 * Lists each owner with threads once, in a fixed order. The order of the remaining owners does not change
 * when owners appear or disappear between two calls. An owner whose last thread was deleted recently may
 * still appear.
 */
export interface Owners {
  /**
   * Returns up to `limit` tenants that follow the tenant `after`. Returns fewer only at the end of the list.
   */
  tenants(query: { readonly limit: number; readonly after?: string | undefined }): Promise<string[]>;
  /**
   * Returns up to `limit` owners that follow `after`, from one tenant or from all. Returns fewer only at the
   * end of the list.
   */
  list(query: {
    readonly limit: number;
    readonly after?: Owner | undefined;
    readonly tenant?: string | undefined;
  }): Promise<Owner[]>;
  /** Returns the shelves of the owner's agents that contain items. */
  shelves(owner: Owner): Promise<Shelf[]>;
}
