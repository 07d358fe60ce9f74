// A chat with LangGraph's streaming protocol, which the hooks of `@langchain/react` also use.
//
// Run it:   npm start                                              (in another terminal)
// npx node examples/langgraph-react/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/langgraph-react.test.ts

import { Client } from "@langchain/langgraph-sdk";

/** Sends one message and prints the answer as it arrives. Throws the server's error. */
export async function ask(
  url: string,
  { threadId, text }: { threadId: string; text: string },
  print: (text: string) => void,
): Promise<void> {
  const client = new Client({ apiUrl: `${url}/langgraph`, apiKey: null });
  const thread = client.threads.stream(threadId, { assistantId: "assistant" });
  await thread.run.start({ input: { messages: [{ type: "human", content: text }] } });
  for await (const message of thread.messages) for await (const piece of message.text) print(piece);
  await thread.close();
}

if (import.meta.main) {
  const [, , text = "Hello!"] = process.argv;
  const threadId = `chat-${Date.now()}`;
  await ask("http://127.0.0.1:8000", { threadId, text }, (piece) => process.stdout.write(piece));
}
