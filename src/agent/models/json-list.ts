// Writes a long list of values as JSON, in several ticks of the event loop.

import { ownTick } from "../../lib/ticks.ts";

/** Of values that are written in one turn; one turn ends with the value that passes it. */
const SLICE_CHARS = 256 * 1024;

/** The elements of the list, with commas between them, in parts. The first turn is the caller's, the others the tenant's. */
export async function jsonList(values: readonly unknown[], tenant: string): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  let text = "";
  for (const [index, value] of values.entries()) {
    text += `${index === 0 ? "" : ","}${JSON.stringify(value)}`;
    if (text.length < SLICE_CHARS) continue;
    parts.push(Buffer.from(text));
    text = "";
    await ownTick(tenant);
  }
  return [...parts, Buffer.from(text)];
}
