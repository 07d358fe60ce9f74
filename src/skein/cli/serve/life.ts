// The life of one worker process, as the primary process sees it.

import cluster, { type Worker } from "node:cluster";
import { setImmediate } from "node:timers/promises";
import type { Logger } from "../../../lib/logger.ts";
import { type Calls, createCalls } from "./calls.ts";
import type { Taker } from "./door.ts";
import {
  CONNECTION,
  isLike,
  type PrimaryMethods,
  SEAT,
  type Seat,
  TAKEN,
  type WorkerMethods,
} from "./protocol.ts";

interface End {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface Life extends Taker {
  readonly pid: number | undefined;
  readonly calls: Calls<WorkerMethods>;
  /** Returns true once the worker has reported that it accepts requests. */
  isServing(): boolean;
  readonly ended: Promise<End>;
  kill(signal: NodeJS.Signals): void;
}

export function forkWorker(seat: Seat, answers: PrimaryMethods, logger: Logger): Life {
  const worker = cluster.fork({ [SEAT]: JSON.stringify(seat) });
  let isServing = false;
  const calls = createCalls<WorkerMethods>(
    // Drops messages to a worker that has ended.
    (message) => worker.isConnected() && worker.process.send(message, () => {}),
    {
      ...answers,
      serves(started: true) {
        isServing = true;
        answers.serves(started);
      },
    },
  );
  const taker = takerOf(worker);
  worker.on("message", (message) => {
    if (isLike(message, TAKEN)) taker.taken();
    else calls.receive(message);
  });
  return {
    pid: worker.process.pid,
    calls,
    take: taker.take,
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
    // A process that could not be started emits no exit event.
    if (worker.process.pid === undefined) resolve({ code: 1, signal: null });
  });
  return promise;
}

/** Passes connections to a worker, one at a time. Call `taken` when the worker confirms one. */
function takerOf(worker: Worker): Taker & { taken(): void } {
  let resolve = (_isTaken: boolean) => {};
  worker.process.once("exit", async () => {
    // Node does not report the end of a channel while a connection is being sent over it.
    while (worker.isConnected()) await setImmediate();
    // All messages from the worker have been read, so it has not touched an unconfirmed connection.
    resolve(false);
  });
  return {
    taken: () => resolve(true),
    take(socket) {
      const taking = Promise.withResolvers<boolean>();
      resolve = taking.resolve;
      if (!worker.isConnected()) resolve(false);
      // Keeps the socket open here, because another worker may have to take it.
      else worker.process.send(CONNECTION, socket, { keepOpen: true }, (error) => error && resolve(false));
      return taking.promise;
    },
  };
}
