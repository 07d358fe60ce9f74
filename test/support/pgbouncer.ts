// A real PgBouncer in front of a test's PostgreSQL.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";

const TOOLS = fileURLToPath(new URL("../../script/test-tools", import.meta.url));

/** Whether there is one: see needing.ts. */
export const hasPgBouncer = () => spawnSync("sh", [TOOLS, "pgbouncer"], { stdio: "ignore" }).status === 0;

export interface TestPooler {
  readonly url: string;
  close(): Promise<void>;
}

/** In front of the database at `url`. The caller closes it. */
export async function startPgBouncer(url: string, mode: "session" | "transaction"): Promise<TestPooler> {
  const { port: behind, pathname } = new URL(url);
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "skein-pgbouncer-"));
  await chmod(folder, 0o755);
  const file = join(folder, "pgbouncer.ini");
  await writeFile(
    file,
    `[databases]
* = host=127.0.0.1 port=${behind} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
max_client_conn = 200
default_pool_size = 50
ignore_startup_parameters = extra_float_digits
`,
  );
  // It refuses to run as root.
  const own = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  const path = `${process.env.PATH}:/usr/sbin`;
  const child = spawn("pgbouncer", [...own, file], { stdio: "ignore", env: { PATH: path } });
  const exited = once(child, "exit");
  while (!(await listens(port)))
    if (child.exitCode !== null) throw new Error("PgBouncer has ended by itself.");
  return {
    url: `postgres://postgres@127.0.0.1:${port}${pathname}`,
    async close() {
      child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  } finally {
    socket.destroy();
  }
}
