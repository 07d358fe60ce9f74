// The fake provider, a process of its own: OpenAI's and Anthropic's streaming wire on 127.0.0.1:$PORT. What it
// answers is in the request, see script.ts. The first token of an answer comes at once, each further one a
// delay later; with no delay, each in a tick of the event loop of its own, as fast as the reader takes them.

import { createServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Script, scriptIn, tokenOf } from "./script.ts";
import { type Wire, wireOf } from "./wires.ts";

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (text: string) => (body += text));
  request.on("end", () => {
    if (request.method === "GET") response.end("ok");
    else answer(wireOf(request.url ?? ""), body, response);
  });
});

function answer(wire: Wire, body: string, response: ServerResponse): void {
  const { script, end } = scriptIn(body);
  const { socket } = response;
  if (!socket) return;
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const called = count(body, wire.result, end);
  if (called < script.calls) {
    write(socket, wire.call(called + 1));
    response.end();
  } else speak(wire, script, socket, response);
}

function speak(wire: Wire, script: Script, socket: Socket, response: ServerResponse): void {
  const { tokens, delayMs, batch } = script;
  const began = performance.now();
  const fixed = script.stamped ? undefined : wire.delta(tokenOf(script));
  let sent = 0;

  const step = () => {
    if (socket.destroyed) return;
    if (socket.writableNeedDrain) return void socket.once("drain", step);
    let packet = sent === 0 ? wire.opening : "";
    for (const until = Math.min(sent + batch, tokens); sent < until; sent++)
      packet += fixed ?? wire.delta(tokenOf(script));
    write(socket, packet);
    if (sent === tokens) {
      write(socket, wire.closing(tokens));
      response.end();
    } else if (delayMs === 0) setImmediate(step);
    else setTimeout(step, Math.max(0, began + sent * delayMs - performance.now()));
  };
  step();
}

/** The chunk's frame and its text in one string, past `response.write`: a third cheaper for a chunk on its own. */
function write(socket: Socket, text: string): void {
  socket.write(`${text.length.toString(16)}\r\n${text}\r\n`, "latin1");
}

function count(text: string, part: string, from: number): number {
  let found = 0;
  for (let at = text.indexOf(part, from); at !== -1; at = text.indexOf(part, at + 1)) found++;
  return found;
}

server.keepAliveTimeout = 60_000;
server.listen(Number(process.env.PORT), "127.0.0.1");
for (const end of ["SIGTERM", "disconnect"]) process.once(end, () => process.exit(0));
