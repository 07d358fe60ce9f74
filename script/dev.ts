// `npm run dev`: restarts the server when its sources change, and rebuilds the page when the page's sources change.
// Passes arguments to `skein serve`. The script and the server end together.

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
  // At a terminal, Ctrl-C also reaches the server, and a second signal would end the server at once.
  process.on("SIGINT", () => process.stdin.isTTY || server.kill("SIGINT"));
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => server.kill(signal));
  const [code] = await once(server, "exit");
  process.exitCode = code ?? 1;
} finally {
  await endWatching();
}
process.exit();
