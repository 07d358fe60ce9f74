// Requests by the fetch that never leads inside, and their outcomes in words.

import { hostList } from "../../src/lib/hosts.ts";
import { FetchError } from "../../src/lib/ssrf-safe-fetch/dial.ts";
import { createPublicFetch, type PublicFetchOptions } from "../../src/lib/ssrf-safe-fetch/index.ts";
import type { LocalServer } from "./hostile.ts";

export const MIB = 1024 * 1024;
export const NEVER = new AbortController().signal;

/** The body, or how it failed. */
export async function get(url: string, options: PublicFetchOptions = {}, signal = NEVER) {
  const fetch = createPublicFetch(options);
  try {
    await using response = await fetch(url, { method: "POST", headers: { a: "b" }, body: "{}", signal });
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.read(MIB)) chunks.push(chunk);
    return { status: response.status, text: Buffer.concat(chunks).toString() };
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    return { failure: error.failure, message: error.message };
  }
}

export const allowing = ({ port }: LocalServer): PublicFetchOptions => ({
  allow: hostList(`127.0.0.1:${port}`),
});
