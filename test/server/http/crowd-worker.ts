// Opens connections at once, says when all are there, asks on each of them, and tells how many answers came.

import { once } from "node:events";
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const { port, connections, connected } = workerData as {
  readonly port: number;
  readonly connections: number;
  /** How many there are. */
  readonly connected: Int32Array;
};

const REQUEST = "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";

async function ask(): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
  try {
    await once(socket, "connect");
    Atomics.add(connected, 0, 1);
    Atomics.notify(connected, 0);
    socket.write(REQUEST);
    await once(socket, "close");
    return answer.slice(0, "HTTP/1.1 200".length);
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}

const answers = await Promise.all(Array.from({ length: connections }, ask));
parentPort?.postMessage(answers.filter((answer) => answer !== "HTTP/1.1 200"));
