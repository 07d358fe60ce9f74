// Reads the robots.txt of sites and caches it for an hour.

import { LRUCache } from "lru-cache";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import type { DocumentPool } from "../../../lib/web-documents/pool.ts";
import { type Asker, type Hosts, type PublicGet, readBody } from "./get.ts";

/** The name to which rules in robots.txt can refer. */
const ROBOT = "Skein";
const MAX_BYTES = 512 * 1024;
const TTL_MS = 60 * 60 * 1000;
/** The time for which the failure of a site is remembered. */
const FAILED_TTL_MS = 60 * 1000;
/** The maximum size of all cached files, in bytes. */
const MAX_REMEMBERED = 16 * 1024 * 1024;

export type Robots = (url: URL, asker: Asker) => Promise<boolean>;

/** Returns a function that returns true if the site's robots.txt allows agents to read a URL. */
export function createRobots(get: PublicGet, hosts: Hosts, pool: DocumentPool): Robots {
  const files = new LRUCache<string, string>({
    maxSize: MAX_REMEMBERED,
    sizeCalculation: (text) => text.length + 1,
    ttl: TTL_MS,
  });
  return async (url, asker) => {
    const known = files.get(url.origin);
    const text = known ?? (await fileOf(url, asker));
    if (text === "") return true;
    return pool.isAllowed({ kind: "robots", text, url: url.href, agent: ROBOT }, asker.turn, asker.signal);
  };

  async function fileOf({ origin }: URL, asker: Asker): Promise<string> {
    try {
      await using response = await get(new URL("/robots.txt", origin), { hosts, asker });
      const { status } = response;
      const isFailing = status >= 500 || status === 429;
      const isThere = status >= 200 && status < 300;
      const text = isThere ? Buffer.from(await readBody(response, MAX_BYTES)).toString("utf8") : "";
      // According to RFC 9309, nothing on a site may be read while the site fails. If it has no robots.txt,
      // everything may be read.
      files.set(origin, isFailing ? NOTHING : text, isFailing ? { ttl: FAILED_TTL_MS } : {});
      return isFailing ? NOTHING : text;
    } catch (error) {
      // Reading the page itself will fail too, with a better reason.
      if (error instanceof FetchError) return "";
      throw error;
    }
  }
}

const NOTHING = "User-agent: *\nDisallow: /";
