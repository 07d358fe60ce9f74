// Limits how often a piece of work runs.

/**
 * Runs `work` at once, and again after each call of the returned function, but never twice within `ms` milliseconds and
 * never in parallel. `work` must not throw. Stops when `signal` aborts.
 */
export function throttled(work: () => Promise<void>, ms: number, signal: AbortSignal): () => void {
  let isWanted = false;
  let isBusy = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });

  async function turn(): Promise<void> {
    isBusy = true;
    isWanted = false;
    const began = performance.now();
    await work();
    if (signal.aborted) return;
    timer = setTimeout(rested, Math.max(0, ms - (performance.now() - began)));
  }
  function rested(): void {
    isBusy = false;
    if (isWanted) void turn();
  }

  void turn();
  return () => {
    isWanted = true;
    if (!isBusy && !signal.aborted) void turn();
  };
}
