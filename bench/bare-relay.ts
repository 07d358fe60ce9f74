// The yardstick: the minimum work of a Node process between a provider and a client. Threads are in a Map, and a tool
// loop parses and re-emits OpenAI's wire format with one `write` per delta. There are no checks, no log, no replay and
// no persistence. The relay implements the parts of Skein's API that the load generator needs.

import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";

interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}
interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}
interface Delta {
  content?: string;
  tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
}
interface Chunk {
  choices: { delta: Delta }[];
}

const MAX_ITERATIONS = 25;
const provider = new URL(`${process.env.PROVIDER_URL}/chat/completions`);
const agent = new Agent({ keepAlive: true });
const threads = new Map<string, Message[]>();

const TOOLS: Record<string, (args: unknown) => string> = {
  write_todos: (args) => `The list is now ${JSON.stringify(args).length} characters long.`,
};
const tools = Object.keys(TOOLS).map((name) => ({
  type: "function",
  function: {
    name,
    description: "Keeps the plan.",
    parameters: { type: "object", properties: { todos: { type: "array" } } },
  },
}));

const server = createServer(async (request, response) => {
  if (request.method === "GET") return void response.end("ok");
  try {
    const { messages } = JSON.parse(await textOf(request)) as { messages: Message[] };
    await run(threadOf(request.url ?? ""), messages, response);
  } catch (error) {
    send(response, "error", { message: String(error) });
    response.end();
  }
});

function threadOf(path: string): Message[] {
  const id = path.split("/")[2] ?? "";
  const thread = threads.get(id) ?? [{ role: "system", content: "You are a helpful assistant." }];
  threads.set(id, thread);
  return thread;
}

async function run(thread: Message[], input: readonly Message[], response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  send(response, "run_start", { thread_messages: thread.length });
  thread.push(...input);
  for (let iteration = 0; iteration < MAX_ITERATIONS; iteration++) {
    const answer = await ask(thread, (delta) => send(response, "delta", { delta }));
    thread.push(answer);
    if (!answer.tool_calls) break;
    for (const call of answer.tool_calls) thread.push(carryOut(call, response));
  }
  send(response, "done", { status: "success" });
  response.end();
}

function carryOut({ id, function: { name, arguments: args } }: ToolCall, response: ServerResponse): Message {
  send(response, "tool_start", { id, name, args });
  const content = TOOLS[name]?.(JSON.parse(args)) ?? `There is no tool ${name}.`;
  send(response, "tool_end", { id, output: content });
  return { role: "tool", tool_call_id: id, content };
}

function send(response: ServerResponse, event: string, data: object): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

async function ask(messages: readonly Message[], onDelta: (text: string) => void): Promise<Message> {
  const body = JSON.stringify({
    model: "fake",
    stream: true,
    stream_options: { include_usage: true },
    messages,
    tools,
  });
  const answer: Message = { role: "assistant", content: "" };
  const calls: ToolCall[] = [];
  await eventsOf(await post(body), ({ choices: [choice] }) => {
    const { content, tool_calls = [] } = choice?.delta ?? {};
    for (const part of tool_calls) addTo(calls, part);
    if (!content) return;
    answer.content += content;
    onDelta(content);
  });
  return calls.length > 0 ? { ...answer, tool_calls: calls } : answer;
}

function addTo(calls: ToolCall[], part: NonNullable<Delta["tool_calls"]>[number]): void {
  const { index, id = "", function: piece } = part;
  const { name, arguments: args } = calls[index]?.function ?? { name: "", arguments: "" };
  calls[index] = {
    id: calls[index]?.id ?? id,
    type: "function",
    function: { name: name + (piece.name ?? ""), arguments: args + piece.arguments },
  };
}

function post(body: string): Promise<IncomingMessage> {
  const headers = {
    "content-type": "application/json",
    authorization: "Bearer test",
    "content-length": Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    request(provider, { method: "POST", agent, headers }, resolve).on("error", reject).end(body);
  });
}

function eventsOf(stream: IncomingMessage, onChunk: (chunk: Chunk) => void): Promise<void> {
  if (stream.statusCode !== 200) throw new Error(`The provider answered ${stream.statusCode}.`);
  stream.setEncoding("utf8");
  let held = "";
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("end", resolve);
    stream.on("data", (text: string) => {
      held += text;
      let start = 0;
      for (let end = held.indexOf("\n\n"); end !== -1; end = held.indexOf("\n\n", start)) {
        const data = held.slice(start + "data: ".length, end);
        start = end + 2;
        if (data !== "[DONE]") onChunk(JSON.parse(data) as Chunk);
      }
      held = held.slice(start);
    });
  });
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
