// A background response with OpenAI's own SDK. It continues if the client disconnects, and the client resumes after the
// last event that it received.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/openai-responses/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/openai.test.ts

import OpenAI from "openai";

/** Sends one message and prints the answer as it arrives, across lost connections. Throws the server's error. */
export async function ask(url: string, input: string, print: (text: string) => void): Promise<void> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const background = true;
  let stream = await client.responses.create({ model: "assistant", input, background, stream: true });
  let id = "";
  let last = 0;
  let isOver = false;
  while (!isOver) {
    try {
      for await (const event of stream) {
        last = event.sequence_number;
        if (event.type === "response.created") id = event.response.id;
        if (event.type === "response.output_text.delta") print(event.delta);
      }
      isOver = true;
    } catch (error) {
      // Without an id, the response cannot be resumed. With one, the server reports the problem.
      if (id === "") throw error;
      stream = await client.responses.retrieve(id, { stream: true, starting_after: last });
    }
  }
}

if (import.meta.main) {
  const [, , text = "Hello!"] = process.argv;
  await ask("http://127.0.0.1:8000", text, (piece) => process.stdout.write(piece));
}
