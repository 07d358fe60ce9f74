// Fills V8's compile cache with the code of a server that has executed runs:  warm.ts ENTRY. V8 stores the compiled
// code of a file when the first process ends, and never updates it. The first process of a build therefore executes
// runs with a tool before it ends. This script plays its model.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const RUNS = 30;
/** The time limit for the whole script, in ms. */
const PATIENCE_MS = 30_000;

const [entry = "dist/main.js"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "skein-warm-"));
const signal = AbortSignal.timeout(PATIENCE_MS);
const provider = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => {
    body += text;
  });
  request.on("end", () => answer(JSON.parse(body), response));
});
try {
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening", { signal });
  await withServer((provider.address() as AddressInfo).port, async (url) => {
    for (let run = 0; run < RUNS; run++) await runOn(`${url}/threads/warm-${run}/runs`);
  });
} finally {
  provider.close();
  provider.closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
}

async function withServer(providerPort: number, work: (url: string) => Promise<void>): Promise<void> {
  const agents = join(folder, "agents.yaml");
  const model = { provider: "openai", model: "warm", base_url: `http://127.0.0.1:${providerPort}/v1` };
  const agent = { model: { ...model, api_key_env: "WARM_KEY" }, tools: ["current_datetime"] };
  // JSON is valid YAML.
  writeFileSync(agents, JSON.stringify({ version: 1, agents: { warm: agent } }));
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, AGENTS_FILE: agents, DATA_DIR: join(folder, "data") },
    ...{ STORE: "sqlite", HOST: "127.0.0.1", PORT: "0", LOG_FORMAT: "json", WARM_KEY: "none" },
  };
  const server = spawn(
    process.execPath,
    ["--v8-pool-size=0", "--min-semi-space-size=2", resolve(entry), "serve"],
    {
      ...{ cwd: folder, env, signal },
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const ended = once(server, "exit");
  try {
    await work(await addressIn(server.stdout));
  } finally {
    server.kill("SIGTERM");
    await ended;
  }
}

/** Returns the address in the server's log. */
async function addressIn(log: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(log)) {
    const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(line) ?? [];
    if (address === undefined) continue;
    log.resume();
    return address;
  }
  throw new Error("The server ended before it listened.");
}

async function runOn(url: string): Promise<void> {
  const response = await fetch(url, {
    ...{ method: "POST", signal },
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ input: "What time is it?" }),
  });
  const text = await response.text();
  if (!text.includes('"status":"success"')) throw new Error(`The run failed: ${text}`);
}

/** Calls the tool first, then answers with text, in the stream format of chat completions. */
function answer({ messages }: { messages: { role: string }[] }, response: ServerResponse): void {
  const isAnswered = messages.at(-1)?.role === "tool";
  const call = {
    ...{ index: 0, id: "call_1", type: "function" },
    function: { name: "current_datetime", arguments: '{"time_zone":"UTC"}' },
  };
  const deltas = isAnswered
    ? Array.from({ length: 20 }, () => ({ content: "It is late. " }))
    : [{ tool_calls: [call] }];
  const chunk = (choice: object, more: object = {}) =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 0, model: "warm", choices: [{ index: 0, ...choice }], ...more })}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const delta of deltas) response.write(chunk({ delta, finish_reason: null }));
  const finish_reason = isAnswered ? "stop" : "tool_calls";
  const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 };
  response.end(`${chunk({ delta: {}, finish_reason }, { usage })}data: [DONE]\n\n`);
}
