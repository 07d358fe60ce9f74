// What may lie in a Redis that is no longer used: only what has its place, with its owner's tag, and an end to its
// time unless it is data.

import type { TestRedis } from "../../support/redis.ts";

const TAG = "[A-Za-z0-9_-]{22}";
const OF_THREAD = new RegExp(String.raw`^sk:\{(${TAG}:.+)\}:([a-z]+)(?::(.+))?$`);
const LIST = new RegExp(String.raw`^sk:\{${TAG}\}:threads$`);
/** What has no time, because it must outlast all that it knows of. */
const SHARED = new RegExp(
  String.raw`^sk:\{(deployment|format|secret|owners)\}$|^sk:\{owners\}:found$|^sk:\{(due|deferred|turns:\w+)\}:(tenants|${TAG})$|^sk:\{\w+\}:((due|names|created|updated):)?records$`,
);
const COUNTERS = "rate|held|spent|reserved|usage|settled|stored";
/** What stays until its tenant or its user takes it away: documents of any kind, items, and the names of shelves. */
const KEPT = new RegExp(
  [
    String.raw`^sk:\{${TAG}\}:((due|names|created|updated):)?(documents:\w+|(?!(${COUNTERS}|threads)$)\w+)$`,
    String.raw`^sk:\{${TAG}\}:(notes|tasks|reflections|settings):.+$`,
  ].join("|"),
);
const CALL = "[A-Za-z0-9]{22}";
const PASSING = new RegExp(
  [
    String.raw`^sk:\{(due|deferred|turns:\w+)\}:taken:${CALL}$`,
    String.raw`^sk:\{(replicated|probe)\}$|^sk:\{token:[0-9a-f]{64}\}$`,
    String.raw`^sk:\{.+\}:done:\w+$`,
    String.raw`^sk:\{${TAG}\}:(${COUNTERS})(:|$)`,
  ].join("|"),
);

const PARTS = new Set([
  ...["meta", "messages", "ids", "state", "patches", "order", "begun", "runs", "known", "queue", "requests"],
  ...["lease", "inbox", "events", "deleted", "deferred", "replies"],
  ...["notes", "tasks", "reflections", "settings", "sent"],
]);
/** Of a thread on which a run is active or waits, these may still go: what has ended. */
const PASSING_PARTS = new Set(["events", "deleted"]);

/** Every key that is where it should not be, or stays longer than it may. */
export function audit(redis: TestRedis, database = 0): string[] {
  const texts = redis.ask("-n", String(database), "EVAL", ALL_KEYS, "0").split("\n");
  const keys = texts
    .filter((text) => text !== "")
    .map((text) => JSON.parse(text) as [string, number, boolean]);
  const names = new Set(keys.map(([name]) => name));
  return keys.flatMap(([name, ttl, isLive]) => {
    const fault = faultOf(name, ttl >= 0, isLive, names);
    return fault ? [`${name}: ${fault}`] : [];
  });
}

function faultOf(
  name: string,
  ends: boolean,
  isLive: boolean,
  names: ReadonlySet<string>,
): string | undefined {
  if (SHARED.test(name) || KEPT.test(name)) return ends ? "has an end" : undefined;
  if (LIST.test(name) || PASSING.test(name)) return ends ? undefined : "has no end";
  const [, thread, part = ""] = OF_THREAD.exec(name) ?? [];
  if (thread === undefined || !PARTS.has(part)) return "has no place";
  const isBusy = ["lease", "queue"].some((each) => names.has(`sk:{${thread}}:${each}`));
  if (PASSING_PARTS.has(part)) return ends || isLive ? undefined : "has no end";
  if (isBusy) return ends ? "has an end while the thread is busy" : undefined;
  return ends ? undefined : "has no end";
}

/** Name, time left, and of a run's events, whether the run has not ended. */
const ALL_KEYS = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local place, run = string.match(key, '^(sk:{.+}:)events:(.+)$')
  local live = run and redis.call('HEXISTS', place .. 'runs', 'end:' .. run) == 0 or false
  found[#found + 1] = cjson.encode({ key, redis.call('PTTL', key), live })
end
return table.concat(found, '\\n')`;
