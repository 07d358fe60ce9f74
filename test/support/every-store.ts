// What a server promises with each store that it can have.

import { afterAll, describe } from "vitest";
import { needing } from "./needing.ts";
import { startRedis } from "./redis.ts";

/** `tests` once for each store; `config` is the part of a server's config that chooses an empty one of it. */
export async function describeEveryConfig(
  tests: (config: () => { readonly store: string }) => void,
): Promise<void> {
  const redis = await startRedis("--databases", "100");
  afterAll(() => redis?.close());
  let databases = 0;
  const onRedis = () => ({ store: "redis", redis: { url: `${redis?.url}/${databases++}` } });
  for (const store of ["memory", "sqlite"]) describe(`on ${store}`, () => tests(() => ({ store })));
  needing(redis, "redis-server").describe("on redis", () => tests(onRedis));
}
