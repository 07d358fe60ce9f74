// One worker, from its fork to its end, as the primary process sees it.

import cluster, { type Worker } from "node:cluster";
import type { Logger } from "../../lib/logger.ts";
import { type Calls, createCalls } from "./calls.ts";
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

/** What Node's round robin sends to a worker, with a handle, and what comes back: not documented, so it is only looked at. */
interface Handover {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}
interface Handle {
  close(): void;
}

/**
 * Closes connections on their way to a worker when it ends, as the operating system does with those that it had taken. Node
 * forgets them: they would stay open, and their clients would wait for an answer that never comes.
 */
function closeUntaken(worker: Worker): void {
  const { process } = worker;
  const untaken = new Map<number, Handle>();
  const send = process.send.bind(process) as (...args: unknown[]) => boolean;
  process.send = (...args: unknown[]) => {
    const [{ act, seq }, handle] = args as [Handover, Handle | undefined];
    if (act === "newconn" && seq !== undefined && handle) untaken.set(seq, handle);
    return send(...args);
  };
  process.on("internalMessage", ({ ack }: Handover) => {
    if (ack !== undefined) untaken.delete(ack);
  });
  process.once("exit", () => {
    for (const handle of untaken.values()) handle.close();
    untaken.clear();
  });
}
