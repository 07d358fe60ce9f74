// Records the logs in test/fixtures/logs: starts the server with the fake provider, drives each scenario over HTTP, and
// writes the runs with their events. `node script/record-logs.ts [part of a name]`

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkGrammar } from "../src/protocol/grammar.ts";
import { type Answer, say } from "../test/support/fake-provider/script.ts";
import { sentBody } from "../test/support/fake-provider/sent-body.ts";
import { startFakeProvider } from "../test/support/fake-provider/server.ts";
import { clientOf } from "./logs/client.ts";
import { AGENTS, SCENARIOS, type Scenario } from "./logs/scenarios.ts";
import { startServer, startTools } from "./logs/servers.ts";
import { stable } from "./logs/stable.ts";

const FOLDER = fileURLToPath(new URL("../test/fixtures/logs/", import.meta.url));
const PORT = 18_543;
const only = process.argv[2] ?? "";

let answers: Record<string, Answer[]> = {};
const provider = await startFakeProvider({
  script: (request) =>
    answers[String(sentBody(request).model)]?.shift() ?? { blocks: [say("Nothing more.")] },
});
const tools = await startTools();
const dir = await mkdtemp(join(tmpdir(), "skein-logs-"));
const modelOf = (_: string, agent: string) =>
  `provider: openai, model: ${agent}, base_url: "${provider.url}/v1", api_key: k`;
await writeFile(
  join(dir, "agents.yaml"),
  AGENTS.replaceAll(/(?<=\{ )\$(\w+)(?= \}|,)/g, modelOf).replaceAll(
    /\$(\w+)/g,
    (all, agent: string) => `{ ${modelOf(all, agent)} }`,
  ),
);
await writeFile(
  join(dir, "server.yaml"),
  JSON.stringify({ public_url: `http://127.0.0.1:${PORT}`, http_tools: { allow: tools.url.slice(7) } }),
);
const server = await startServer(
  {
    ...{ CONFIG_FILE: join(dir, "server.yaml"), AGENTS_FILE: join(dir, "agents.yaml") },
    ...{ DATA_DIR: join(dir, "data"), LOG_LEVEL: "fatal" },
  },
  PORT,
);

async function register(name: string): Promise<void> {
  const response = await fetch(`${server.url()}/tools`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ...{ name, description: "What it costs.", parameters: { type: "object" }, callback_url: tools.url },
      annotations: { requires_permission: false },
    }),
  });
  if (!response.ok) throw new Error(await response.text());
}

async function record(name: string, { agent = "assistant", models, drive }: Scenario): Promise<void> {
  answers = Object.fromEntries(Object.entries(models).map(([model, all]) => [model, [...all]]));
  const client = clientOf(server, tools, { thread: name, agent });
  await drive(client);
  const logs = stable(await client.logs());
  const faults = logs.flatMap(({ events }) => checkGrammar(events));
  if (faults.length > 0) throw new Error(`${name}: ${faults.join("; ")}`);
  const lines = logs.map(({ run, events }) => {
    const all = events.map((event) => `  ${JSON.stringify(event)}`).join(",\n");
    return `{"run":${JSON.stringify(run)},"events":[\n${all}\n]}`;
  });
  await writeFile(join(FOLDER, `${name}.json`), `[${lines.join(",\n")}]\n`);
  console.log(name, logs.map(({ run, events }) => `${run.status} ${events.length}`).join(", "));
}

try {
  await mkdir(FOLDER, { recursive: true });
  for (const tool of ["freight", "quote"]) await register(tool);
  for (const [name, scenario] of Object.entries(SCENARIOS))
    if (name.includes(only)) await record(name, scenario);
} finally {
  await server.stop();
  await provider.close();
  tools.close();
  await rm(dir, { recursive: true, force: true });
}
