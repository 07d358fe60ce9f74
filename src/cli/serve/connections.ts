// Connections on their way from the primary process to a worker. Node forgets those that a worker had not taken when it
// ended: they would stay open, and their clients would wait for an answer that never comes.

import type { Worker } from "node:cluster";

/** What Node's round robin sends to a worker, with a handle, and what comes back: not documented, so it is only looked at. */
interface Handover {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}
interface Handle {
  close(): void;
}

/** Closes them when the worker ends, as the operating system does with those that it had taken. */
export function closeUntaken(worker: Worker): void {
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
