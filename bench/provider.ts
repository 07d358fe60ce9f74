// The fake provider, which is a separate process. It implements OpenAI's and Anthropic's streaming formats on
// 127.0.0.1:$PORT. The request contains the answer (see script.ts). The first token of an answer is sent at once, and
// each further token after a delay. If the delay is 0, each token is sent in its own tick of the event loop, as fast as
// the reader takes them.

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

/**
 * Writes the chunk's frame and text as one string, bypassing `response.write`. This costs a third less for a single
 * chunk.
 */
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
