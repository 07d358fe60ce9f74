// Work that is asked for more often than it is worth doing.

/**
 * Does `work` at once, and again after each call of the function that it returns: never twice within `ms`, never two at a time.
 * `work` must not throw. Ends with `signal`.
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
