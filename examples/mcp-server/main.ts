// A program that uses an agent as a tool, with MCP's own client. The server supports MCP if `wires` in
// config/server.yaml lists `mcp`.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/mcp-server/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/mcp-server.test.ts

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** Gives the agent a task and returns its answer. Throws the server's error. */
export async function ask(url: string, message: string, onProgress: (what: string) => void): Promise<string> {
  const client = new Client({ name: "example", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  try {
    const call = { name: "run_agent", arguments: { agent: "assistant", message } };
    const onprogress = ({ message: what = "" }) => onProgress(what);
    const result = await client.callTool(call, { onprogress, resetTimeoutOnProgress: true });
    const { text } = result.structuredContent as { text: string };
    return text;
  } finally {
    await client.close();
  }
}

if (import.meta.main) {
  const [, , message = "Hello!"] = process.argv;
  console.log(await ask("http://127.0.0.1:8000", message, (what) => console.error(`(${what})`)));
}
