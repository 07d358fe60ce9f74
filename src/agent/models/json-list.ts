// Serializes a long list of values as JSON over several ticks of the event loop.

import { ownTick } from "../../lib/ticks.ts";

/** The number of characters to serialize per turn. A turn ends with the value that exceeds this number. */
const SLICE_CHARS = 256 * 1024;

/**
 * Returns the elements of the list, separated by commas, in parts. The first turn uses the caller's time, and
 * all other turns use the time of the tenant.
 */
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
