// A process that uses a database and writes without end, to be killed in the middle of it. Run with the path of
// the database. Each line of its output is the number of entries that are written for certain.

import { userMessage } from "../../../src/agent/core/message.ts";
import { newRunId } from "../../../src/agent/core/new-ids.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";

const [, , path = ""] = process.argv;
const stores = createSqliteStores({ path });
const started = await stores.runs.start(
  { tenant: "acme", user: "ada" },
  {
    ...{ id: newRunId(), thread_id: "t", agent: "helper", metadata: {}, idempotency_key: "k" },
    request: { settings: {}, input: [userMessage("go")] },
  },
  "reject",
);
if (started.outcome !== "claimed") throw new Error(started.outcome);
const { lease } = started.claim;
await stores.runs.steer(lease.owner, "t", lease.run_id, userMessage("left"));
await stores.runs.requestStop(lease.owner, "t", lease.run_id, "interrupt");

for (let last = 0; ; last += 10) {
  const deltas = Array.from({ length: 8 }, (_, n) => `${last + n}`);
  await stores.events.append(
    lease,
    deltas.map((delta) => ({ event: "on_chat_model_stream", data: { delta } })),
  );
  process.stdout.write(`${last + 8}\n`);
  await stores.events.append(lease, [
    { event: "on_message", data: { message: userMessage(`${last + 9}`) } },
    { event: "on_state", data: { key: "count", value: last + 10 } },
  ]);
  process.stdout.write(`${last + 10}\n`);
}
