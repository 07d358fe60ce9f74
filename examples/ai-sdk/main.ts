// A terminal chat with the AI SDK's own client, which pages use through `useChat`. Only the URL refers to Skein.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/ai-sdk/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/ai-sdk.test.ts

import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";

/** Sends one message and returns the answer. Throws the server's error. */
export async function ask(url: string, id: string, text: string): Promise<UIMessage> {
  const api = `${url}/ai-sdk/assistant/chat`;
  const chat = new Chat({ id, transport: new DefaultChatTransport({ api }) });
  await chat.sendMessage({ text });
  if (chat.error) throw chat.error;
  if (!chat.lastMessage) throw new Error("There is no answer.");
  return chat.lastMessage;
}

if (import.meta.main) {
  const { parts } = await ask("http://127.0.0.1:8000", `chat-${Date.now()}`, process.argv[2] ?? "Hello!");
  for (const part of parts) {
    if (part.type === "text") console.log(part.text);
    if (part.type === "dynamic-tool") console.log(`→ ${part.toolName} (${part.state})`);
  }
}
