// One worker, from its fork to its end, as the primary process sees it.

import cluster, { type Worker } from "node:cluster";
import type { Logger } from "../../lib/logger.ts";
import { type Calls, createCalls } from "./calls.ts";
import { closeUntaken } from "./connections.ts";
import { type PrimaryMethods, SEAT, type Seat, type WorkerMethods } from "./protocol.ts";

interface End {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface Life {
  readonly pid: number | undefined;
  readonly calls: Calls<WorkerMethods>;
  /** Whether it has said that it accepts requests. */
  isServing(): boolean;
  readonly ended: Promise<End>;
  kill(signal: NodeJS.Signals): void;
}

export function forkWorker(seat: Seat, answers: PrimaryMethods, logger: Logger): Life {
  const worker = cluster.fork({ [SEAT]: JSON.stringify(seat) });
  let isServing = false;
  const calls = createCalls<WorkerMethods>(
    // Nothing is sent to a worker that has ended.
    (message) => worker.isConnected() && worker.process.send(message, () => {}),
    {
      ...answers,
      listens(address: string) {
        isServing = true;
        answers.listens(address);
      },
    },
  );
  worker.on("message", calls.receive);
  closeUntaken(worker);
  return {
    pid: worker.process.pid,
    calls,
    isServing: () => isServing,
    ended: endOf(worker, seat, logger),
    kill: (signal) => void worker.process.kill(signal),
  };
}

function endOf(worker: Worker, { number }: Seat, logger: Logger): Promise<End> {
  const { promise, resolve } = Promise.withResolvers<End>();
  worker.once("exit", (code: number | null, signal: string | null) => resolve({ code, signal }));
  worker.on("error", (err) => {
    logger.warn({ worker: number, err }, "a worker cannot be started or reached");
    // What could not be started has no exit.
    if (worker.process.pid === undefined) resolve({ code: 1, signal: null });
  });
  return promise;
}
