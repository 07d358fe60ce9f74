// An editor in twenty lines: starts `skein acp` like Zed and other editors do, sends one message, and prints the agent's
// answer and tool calls.
// The settings of real editors are in docs/reference/wires/acp.md.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/acp/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/acp.test.ts

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const SKEIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/**
 * Sends `text` in a new session and returns the agent's answer. Does not permit any tool call. Throws the agent's
 * error.
 */
export async function ask(url: string, text: string): Promise<string> {
  const skein = spawn(process.execPath, [SKEIN, "acp", "--url", url], { stdio: ["pipe", "pipe", "inherit"] });
  const input = Readable.toWeb(skein.stdout) as ReadableStream<Uint8Array>;
  const editor = client({ name: "example" }).onRequest(methods.client.session.requestPermission, () => ({
    outcome: { outcome: "cancelled" },
  }));
  try {
    return await editor.connectWith(ndJsonStream(Writable.toWeb(skein.stdin), input), async (agent) => {
      await agent.request(methods.agent.initialize, { protocolVersion: 1 });
      using session = await agent.buildSession(process.cwd()).start();
      void session.prompt(text).catch(() => {}); // `readText` throws this error
      return await session.readText();
    });
  } finally {
    skein.stdin.end();
  }
}

if (import.meta.main) console.log(await ask("http://127.0.0.1:8000", process.argv[2] ?? "Hello!"));
