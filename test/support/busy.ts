// Work that keeps the event loop.

/** For longer than others may be kept waiting. */
export function keepBusy(): void {
  for (const until = performance.now() + 20; performance.now() < until; );
}
