// `npm run chaos:slots`: thousands of slots of schedules on three servers, whom everything befalls that can befall a server. Prints what
// has happened; exit code 1 when a slot has started two runs, or none.

import { parseArgs } from "node:util";
import { sharedPostgres, sharedRedis } from "../../support/shared-stores.ts";
import { slotReport, slots } from "./slots.ts";

const { values } = parseArgs({
  options: {
    slots: { type: "string", default: "10000" },
    seconds: { type: "string", default: "240" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    store: { type: "string", default: "redis" },
  },
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(130));
const STORES = new Map([
  ["redis", sharedRedis],
  ["postgres", sharedPostgres],
]);
const shared = await STORES.get(values.store)?.();
if (!shared) throw new Error(`There is no store \`${values.store}\` here.`);
console.log(`seed ${values.seed}, ${values.store}, ${values.slots} slots\n`);
try {
  const { seed } = values;
  const outcome = await slots({ slots: Number(values.slots), seconds: Number(values.seconds), seed, shared });
  console.log(slotReport(outcome));
  if (outcome.faults.length > 0) process.exitCode = 1;
} finally {
  await shared.close();
}
process.exit();
