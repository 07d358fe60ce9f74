// A chat with LangGraph's own SDK, which needs only the URL. Prints each message while it is being written.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/langgraph/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/langgraph.test.ts

import { Client } from "@langchain/langgraph-sdk";

/** Sends one message on a new thread and prints the answer as it arrives. Throws the server's error. */
export async function ask(url: string, text: string, print: (text: string) => void): Promise<void> {
  const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: "none" });
  const { thread_id } = await client.threads.create();
  const stream = client.runs.stream(thread_id, "assistant", {
    input: { messages: [{ type: "human", content: text }] },
    streamMode: "messages-tuple",
  });
  for await (const { event, data } of stream) {
    if (event === "error") throw new Error(data.message);
    if (event === "messages" && data[0].type !== "tool") print(String(data[0].content));
  }
}

if (import.meta.main) {
  const [, , text = "Hello!"] = process.argv;
  await ask("http://127.0.0.1:8000", text, (piece) => process.stdout.write(piece));
}
