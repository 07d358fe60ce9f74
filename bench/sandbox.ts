// `npm run bench:sandbox`: compares a user's sandbox with the plain way, one `docker exec` per operation, in one run. A
// figure over its budget is reported but is not an error. The exit code is 1 if something does not work.
//
// As root on Linux, it uses its own engine and host, like the tests do. Elsewhere, it uses the machine's engine
// (`DOCKER_HOST`) and removes everything that it created there.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mayHaveOwnEngine } from "./sandbox/engine.ts";

const main = fileURLToPath(import.meta.resolve("./sandbox/main.ts"));
const testEngine = join(import.meta.dirname, "../script/test-engine");
const host = mayHaveOwnEngine ? ["sh", testEngine, "host"] : [];

if (mayHaveOwnEngine && spawnSync("sh", [testEngine, "prepare"], { stdio: "inherit" }).status !== 0)
  process.exit(1);
const [command = "", ...args] = [...host, process.execPath, main, ...process.argv.slice(2)];
const child = spawn(command, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
const [code] = await once(child, "close");
process.exitCode = code ?? 1;
