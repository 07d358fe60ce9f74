// Redraws views at most once per frame. A thousand events that touch one object cause one redraw of the views that
// watch it.

import { useEffect, useReducer } from "preact/hooks";

const touched = new Set<object>();
const watchers = new WeakMap<object, Set<() => void>>();
const afterwards = new Set<() => void>();
let isRequested = false;

/** Marks `what` as modified. */
export function touch(what: object): void {
  touched.add(what);
  if (isRequested) return;
  isRequested = true;
  // A hidden tab gets no animation frames, but its title is still visible and must be updated.
  if (document.hidden) setTimeout(draw, HIDDEN_MS);
  else requestAnimationFrame(draw);
}

const HIDDEN_MS = 250;

document.addEventListener("visibilitychange", () => {
  if (document.hidden && isRequested) setTimeout(draw, HIDDEN_MS);
});

function draw(): void {
  isRequested = false;
  const now = [...touched];
  touched.clear();
  for (const what of now) for (const redraw of watchers.get(what) ?? []) redraw();
  for (const then of afterwards) then();
}

/** Calls `redraw` in the next frame after `touch(what)`. Returns a function that unsubscribes. */
export function watch(what: object, redraw: () => void): () => void {
  const all = watchers.get(what) ?? new Set();
  watchers.set(what, all.add(redraw));
  return () => void all.delete(redraw);
}

/** Calls `then` after each redraw, for example to scroll. Returns a function that unsubscribes. */
export function afterRedraw(then: () => void): () => void {
  afterwards.add(then);
  return () => void afterwards.delete(then);
}

/** Redraws the component after each `touch(what)`, even if the touch happened before the component was mounted. */
export function useTouched<T extends object>(what: T): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const end = watch(what, () => redraw(undefined));
    redraw(undefined);
    return end;
  }, [what]);
  return what;
}
