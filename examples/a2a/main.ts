// Sends a message to an agent with the A2A SDK's own client, which needs only the card's URL. The server supports A2A if
// `wires` in config/server.yaml lists `a2a`.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/a2a/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/a2a.test.ts

import { Role } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

/** Sends one message and prints the answer as it arrives. Throws the server's error. */
export async function ask(url: string, text: string, print: (text: string) => void): Promise<void> {
  const client = await new ClientFactory().createFromUrl(url);
  const part = { content: { $case: "text", value: text } as const, metadata: undefined };
  const message = {
    ...{ messageId: crypto.randomUUID(), contextId: "", taskId: "", role: Role.ROLE_USER },
    ...{ metadata: undefined, extensions: [], referenceTaskIds: [] },
    parts: [{ ...part, filename: "", mediaType: "text/plain" }],
  };
  const request = { tenant: "", message, configuration: undefined, metadata: undefined };
  for await (const { payload } of client.sendMessageStream(request)) {
    if (payload?.$case !== "artifactUpdate") continue;
    for (const { content } of payload.value.artifact?.parts ?? [])
      if (content?.$case === "text") print(content.value);
  }
}

if (import.meta.main) {
  const [, , text = "Hello!"] = process.argv;
  await ask("http://127.0.0.1:8000", text, (piece) => process.stdout.write(piece));
}
