// The fake provider as a process: node test/support/fake-provider/main.ts --port 9000 --tokens 200 --delay-ms 0 --batch 1
// Prints its address when it listens. Ends with SIGTERM or SIGINT.

import { parseArgs } from "node:util";
import { tokens } from "./script.ts";
import { startFakeProvider } from "./server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    tokens: { type: "string", default: "200" },
    "delay-ms": { type: "string", default: "0" },
    batch: { type: "string", default: "1" },
  },
});

const answer = {
  ...tokens(Number(values.tokens)),
  delayMs: Number(values["delay-ms"]),
  batch: Number(values.batch),
};
const provider = await startFakeProvider({ port: Number(values.port), script: () => answer, journal: false });
console.log(provider.url);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void provider.close());
