// A tenant that reads its list of threads repeatedly while another one attacks: a worker thread, so that building the
// attacks does not delay it. Its parent says when to stop and then gets how long each answer took, in ms.

import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

/** What the worker is given. */
export interface NeighbourData {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}

const PAUSE_MS = 5;
const { port, headers } = workerData as NeighbourData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function ask(): Promise<number> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    get({ port, host: "127.0.0.1", path: "/threads", agent, headers }, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve(performance.now() - began);
        else reject(new Error(`The neighbour got ${response.statusCode}.`));
      });
    }).on("error", reject);
  });
}

let isOver = false;
parentPort?.once("message", () => {
  isOver = true;
});
const answers: number[] = [];
while (!isOver) {
  answers.push(await ask());
  await sleep(PAUSE_MS);
}
agent.destroy();
parentPort?.postMessage(answers);
