// Handles the signals that ask a process to stop.

export const STOPS = ["SIGTERM", "SIGINT"] as const;
export type Stop = (typeof STOPS)[number];

/** The time after `shutdown.grace` from which a shutdown counts as hanging, in ms. */
export const HANGS_AFTER = 10_000;

/**
 * How long a repeated signal is ignored, in ms. npm and process managers forward a signal that the terminal has already
 * sent to the process.
 */
const REPEATED_MS = 1_000;

/** Calls `hear` for each signal, without duplicates. Returns a function that unsubscribes. */
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
  /** Resolves with the first signal. */
  readonly first: Promise<Stop>;
  /** Called on the second signal. */
  onSecond: () => void;
}

/** Installs the handlers. From then on, signals no longer end the process by themselves. */
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
