// A server in a process of its own, in the middle of a command and of a write.

import { newPool } from "../pool.ts";

const [dataDir = ""] = process.argv.slice(2);
const pool = newPool({ dataDir });
const backend = await pool.get({ tenant: "acme", user: "ada" }, { type: "local", name: "code" });
const { signal } = new AbortController();

async function* silent() {
  yield Buffer.from("half");
  const command = backend.exec("trap '' TERM HUP; echo $$ > pid; echo started; sleep 300; :", {
    signal,
    timeoutMs: 300_000,
  });
  await command.next();
  process.send?.("ready");
  await new Promise((resolve) => setTimeout(resolve, 300_000));
}
await backend.write("never", silent(), signal);
