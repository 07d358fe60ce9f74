// The alternative to Skein: the AI SDK in a `node:http` server, with threads in a Map and no persistence. It implements
// the parts of Skein's API that the load generator needs.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from "ai";

const MAX_ITERATIONS = 25;
const model = createOpenAICompatible({
  name: "fake",
  baseURL: process.env.PROVIDER_URL ?? "",
  apiKey: "test",
  includeUsage: true,
})("fake");
const tools = {
  write_todos: tool({
    description: "Keeps the plan.",
    inputSchema: jsonSchema({ type: "object", properties: { todos: { type: "array" } } }),
    execute: async (args) => `The list is now ${JSON.stringify(args).length} characters long.`,
  }),
};
const threads = new Map<string, ModelMessage[]>();

const server = createServer(async (request, response) => {
  if (request.method === "GET") return void response.end("ok");
  try {
    const { messages } = JSON.parse(await textOf(request)) as { messages: ModelMessage[] };
    await run(threadOf(request.url ?? ""), messages, response);
  } catch (error) {
    send(response, "error", { message: String(error) });
  }
  response.end();
});

function threadOf(path: string): ModelMessage[] {
  const id = path.split("/")[2] ?? "";
  const thread = threads.get(id) ?? [];
  threads.set(id, thread);
  return thread;
}

async function run(thread: ModelMessage[], input: readonly ModelMessage[], response: ServerResponse) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  send(response, "run_start", { thread_messages: thread.length });
  thread.push(...input);
  const result = streamText({
    ...{ model, tools, stopWhen: stepCountIs(MAX_ITERATIONS) },
    ...{ instructions: "You are a helpful assistant.", messages: thread },
  });
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") send(response, "delta", { delta: part.text });
    else if (part.type === "tool-call")
      send(response, "tool_start", { id: part.toolCallId, args: part.input });
    else if (part.type === "tool-result")
      send(response, "tool_end", { id: part.toolCallId, output: part.output });
    else if (part.type === "error") throw part.error;
  }
  thread.push(...(await result.response).messages);
  send(response, "done", { status: "success" });
}

function send(response: ServerResponse, event: string, data: object): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  request.setEncoding("utf8");
  for await (const part of request) text += part;
  return text;
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), process.env.HOST);
for (const end of ["SIGTERM", "disconnect"]) process.once(end, () => process.exit(0));
