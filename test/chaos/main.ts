// `npm run chaos`: real servers on a real Redis or PostgreSQL, whom everything befalls that can befall a server. Prints what has
// happened; exit code 1 when a promise was broken.

import { parseArgs } from "node:util";
import { sharedPostgres, sharedRedis } from "../support/shared-stores.ts";
import { chaos } from "./chaos.ts";
import { FAULTS, type Fault } from "./faults.ts";
import { reportOf } from "./report.ts";

const USAGE = `npm run chaos -- [options]

  --seconds <n>      how long it runs (default 120); the verdict takes up to a minute more
  --replicas <n>     servers (default 3)
  --users <n>        runs that are waited for at once (default 24)
  --seed <text>      chance, again (default: a new one)
  --faults <names>   out of ${FAULTS.join(",")} (default: all)
  --keep             keep the servers' logs also when there are no faults
  --store <kind>     redis, postgres, or sqlite with one server (default redis)
`;

const STORES = { redis: sharedRedis, postgres: sharedPostgres, sqlite: async () => undefined };

function readOptions() {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "120" },
      replicas: { type: "string", default: "3" },
      users: { type: "string", default: "24" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      faults: { type: "string", default: FAULTS.join() },
      keep: { type: "boolean", default: false },
      store: { type: "string", default: "redis" },
    },
  });
  const faults = values.faults.split(",").filter((name) => name !== "");
  const unknown = faults.find((name) => !FAULTS.some((fault) => fault === name));
  if (unknown !== undefined) throw new Error(`There is no fault \`${unknown}\`.`);
  const [seconds, replicas, users] = [values.seconds, values.replicas, values.users].map(Number);
  if (!seconds || !replicas || !users) throw new Error("--seconds, --replicas and --users must be above 0.");
  if (!(values.store in STORES)) throw new Error(`There is no store \`${values.store}\`.`);
  // All of them are in FAULTS, and the store in STORES.
  const { seed, store, keep } = values;
  return {
    seconds,
    replicas,
    users,
    seed,
    faults: faults as Fault[],
    store: store as keyof typeof STORES,
    keep,
  };
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(130));

let options: ReturnType<typeof readOptions>;
try {
  options = readOptions();
} catch (error) {
  console.error(`chaos: ${error instanceof Error ? error.message : error}\n\n${USAGE}`);
  process.exit(2);
}
const { store, replicas } = options;
const shared = await STORES[store]();
if (store !== "sqlite" && !shared) process.exit(1);
console.log(`seed ${options.seed}, ${store}, ${shared ? replicas : 1} servers, ${options.seconds} s\n`);
try {
  const outcome = await chaos({ ...options, replicas: shared ? replicas : 1, shared });
  console.log(reportOf(outcome));
  if (outcome.faults.length > 0) process.exitCode = 1;
} finally {
  await shared?.close();
}
process.exit();
