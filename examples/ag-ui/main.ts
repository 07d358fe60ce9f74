// Sends a message to an agent with AG-UI's own client. Only the URL refers to Skein.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/ag-ui/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/ag-ui.test.ts

import { HttpAgent, type Message } from "@ag-ui/client";

/** Sends one message and returns the messages of the answer. Throws the server's error, or the error of a failed run. */
export async function ask(url: string, threadId: string, content: string): Promise<Message[]> {
  const agent = new HttpAgent({ url: `${url}/ag-ui/agent/assistant/run`, threadId });
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  let failure: string | undefined;
  const onRunErrorEvent = ({ event }: { event: { message: string } }) => {
    failure = event.message;
  };
  const { newMessages } = await agent.runAgent({}, { onRunErrorEvent });
  if (failure !== undefined) throw new Error(failure);
  return newMessages;
}

if (import.meta.main) {
  const answer = await ask("http://127.0.0.1:8000", `thread-${Date.now()}`, process.argv[2] ?? "Hello!");
  for (const message of answer) {
    if (typeof message.content === "string") console.log(`${message.role}: ${message.content}`);
    if (message.role === "assistant")
      for (const call of message.toolCalls ?? []) console.log(`→ ${call.function.name}`);
  }
}
