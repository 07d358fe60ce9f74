// A chat with OpenAI's own SDK. The conversation's name selects one thread, so only the newest message counts.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/openai/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/openai.test.ts

import OpenAI from "openai";

/** Sends one message and prints the answer as it arrives. Throws the server's error. */
export async function ask(
  url: string,
  { conversation, text }: { conversation: string; text: string },
  print: (text: string) => void,
): Promise<void> {
  const headers = { "X-Conversation-Id": conversation };
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", defaultHeaders: headers });
  const stream = await client.chat.completions.create({
    model: "assistant",
    messages: [{ role: "user", content: text }],
    stream: true,
  });
  for await (const { choices } of stream) print(choices[0]?.delta.content ?? "");
}

if (import.meta.main) {
  const [, , text = "Hello!"] = process.argv;
  const conversation = `chat-${Date.now()}`;
  await ask("http://127.0.0.1:8000", { conversation, text }, (piece) => process.stdout.write(piece));
}
