// The signals that ask a process to stop.

export const STOPS = ["SIGTERM", "SIGINT"] as const;
export type Stop = (typeof STOPS)[number];

/** Longer than `shutdown.grace`, in ms: a shutdown that takes this long hangs. */
export const HANGS_AFTER = 10_000;

/** The first of them that comes. */
export function stopSignal(): Promise<Stop> {
  return new Promise((resolve) => {
    for (const name of STOPS) process.once(name, () => resolve(name));
  });
}
