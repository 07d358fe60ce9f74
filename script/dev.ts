// `npm run dev`: the server, started again when its sources change, and the page, built again when its own do. Arguments go to
// `skein serve`. It ends with the server, and the server with it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { watchPage } from "./page-build.ts";

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

const endWatching = await watchPage(path("dist/page"));
const server = spawn(
  process.execPath,
  ["--watch", "--watch-preserve-output", path("src/main.ts"), "serve", ...process.argv.slice(2)],
  { stdio: "inherit" },
);
try {
  // Ctrl-C in a terminal reaches the server as well: a second signal would end it at once.
  process.on("SIGINT", () => process.stdin.isTTY || server.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => server.kill(signal));
  const [code] = await once(server, "exit");
  process.exitCode = code ?? 1;
} finally {
  await endWatching();
}
process.exit();
