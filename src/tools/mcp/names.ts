// What a server's tools are called here: `mcp__<server>__<tool>`, as every model provider takes it.

import { createHash } from "node:crypto";

const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/** A tool's name as far as providers take it: what other characters there are becomes `_`. */
export const plainName = (original: string) => original.replace(/[^A-Za-z0-9_-]/g, "_") || "_";

/**
 * A name for each tool of one server, whatever their order: its plain name where that is nobody else's and
 * short enough, else one that ends in a hash of what the server calls it. `originals` has no name twice.
 */
export function toolNames(server: string, originals: readonly string[]): ReadonlyMap<string, string> {
  const prefix = `mcp__${server}__`;
  const room = MAX_LENGTH - prefix.length;
  const sharing = Map.groupBy(originals, plainName);
  const named = originals.map((original): [string, string] => {
    const plain = plainName(original);
    const isClear = original === plain || sharing.get(plain)?.length === 1;
    if (isClear && plain.length <= room) return [original, prefix + plain];
    const hash = createHash("sha256").update(original).digest("hex").slice(0, HASH_LENGTH);
    return [original, `${prefix}${plain.slice(0, room - HASH_LENGTH - 1)}_${hash}`];
  });
  return new Map(named);
}
