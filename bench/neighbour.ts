// A tenant that reads its thread list repeatedly while another tenant attacks. It is a separate process, because it
// represents another machine. When its parent stops it, it reports how long each response took, in ms.

import { Agent, get } from "node:http";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** The JSON that the process gets as its only argument. */
export interface NeighbourData {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}

const PAUSE_MS = 5;
// The parent writes this JSON.
const { port, headers } = JSON.parse(process.argv[2] ?? "") as NeighbourData;
// The work of building the attacks, and the provider, must not delay this process. Only root may set this priority.
if (process.getuid?.() === 0) setPriority(-19);
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
process.once("message", () => {
  isOver = true;
});
const answers: number[] = [];
process.send?.("asks");
while (!isOver) {
  answers.push(await ask());
  await sleep(PAUSE_MS);
}
agent.destroy();
process.send?.(answers, () => process.disconnect());
