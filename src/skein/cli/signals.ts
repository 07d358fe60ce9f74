// The signals that ask a process to stop.

export const STOPS = ["SIGTERM", "SIGINT"] as const;
export type Stop = (typeof STOPS)[number];

/** Longer than `shutdown.grace`, in ms: a shutdown that takes this long hangs. */
export const HANGS_AFTER = 10_000;

/** npm and process managers pass a signal on that the process has got from the terminal too: it comes again within this time, in ms. */
const REPEATED_MS = 1_000;

/** Calls `hear` for each signal that a person or program has sent; returns what ends that. */
export function onSignals<Name extends Stop>(names: readonly Name[], hear: (name: Name) => void): () => void {
  let last: { readonly name: Name; readonly at: number } | undefined;
  const listener = (name: Name) => {
    const now = performance.now();
    if (last?.name === name && now - last.at < REPEATED_MS) return;
    last = { name, at: now };
    hear(name);
  };
  for (const name of names) process.on(name, listener as NodeJS.SignalsListener);
  return () => {
    for (const name of names) process.off(name, listener as NodeJS.SignalsListener);
  };
}

export interface StopRequest {
  /** The first signal. */
  readonly first: Promise<Stop>;
  /** Called at the second one. */
  onSecond: () => void;
}

/** From now on the signals end nothing by themselves. */
export function stopRequest(): StopRequest {
  const first = Promise.withResolvers<Stop>();
  let isFirst = true;
  const request: StopRequest = { first: first.promise, onSecond() {} };
  onSignals(STOPS, (name) => {
    if (isFirst) first.resolve(name);
    else request.onSecond();
    isFirst = false;
  });
  return request;
}
