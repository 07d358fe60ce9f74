// What columns have beside owner and thread.

import { ownerOf } from "../row-keys.ts";

/** The tenant of an owner's text: JSON as well. */
export const tenantText = (owner: string) => JSON.stringify([ownerOf(owner).tenant]);

export const tenantName = (tenant: string) => JSON.stringify([tenant]);
