// A server in a process of its own, in the middle of a command in a Docker sandbox.

import { execute } from "../backend.ts";
import { newPool } from "../pool.ts";

const [host = "", dataDir = "", deployment = "", config = ""] = process.argv.slice(2);
const docker = {
  firewall: "managed",
  egress: {},
  isShared: false,
  caps: { total: 9, tenant: 9 },
  sweepMs: 20_000,
} as const;
const pool = newPool({ dataDir, docker: { engines: [{ name: "default", host }], deployment, ...docker } });
const backend = await pool.get({ tenant: "acme", user: "ada" }, JSON.parse(config));
const { signal } = new AbortController();

await execute(backend, "sleep 301 > /dev/null 2>&1 &");
const command = backend.exec("sleep 302 & setsid sleep 303 & echo begun; sleep 304", {
  signal,
  timeoutMs: 300_000,
});
await command.next();
process.send?.("begun");
await command.next();
