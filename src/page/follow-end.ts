// Scrolls to the end of a growing list until the user scrolls away, and again once the user returns to the end. Only
// user actions count. Scroll positions are unreliable, because the browser estimates the heights of invisible elements.

import { afterRedraw, touch } from "./frame.ts";

export interface FollowedEnd {
  isFollowing: boolean;
  /** True if the list fits into the visible area. */
  isWhole: boolean;
  /** Scrolls to the end and follows it. */
  goToEnd(): void;
  /** Stops following the end. */
  leave(): void;
  close(): void;
}

/** The distance from the end that still counts as the end. */
const NEAR_PX = 8;
const AWAY = ["PageUp", "Home", "ArrowUp"];

/**
 * Touches the returned object when following starts or stops, and when the list starts or stops fitting. The caller
 * closes it.
 */
export function followEnd(scroller: HTMLElement): FollowedEnd {
  const closing = new AbortController();
  const { signal } = closing;
  const passive = { passive: true, signal };
  const set = (isFollowing: boolean) => {
    if (followed.isFollowing === isFollowing) return;
    followed.isFollowing = isFollowing;
    touch(followed);
  };
  const leave = () => {
    if (scroller.scrollHeight > scroller.clientHeight) set(false);
  };
  const toEnd = () => {
    if (followed.isFollowing) scroller.scrollTop = scroller.scrollHeight;
  };
  const followed: FollowedEnd = {
    isFollowing: true,
    isWhole: true,
    leave: () => set(false),
    goToEnd() {
      set(true);
      toEnd();
    },
    close() {
      closing.abort();
      grown.disconnect();
      forget();
    },
  };

  scroller.addEventListener("wheel", ({ deltaY }) => void (deltaY < 0 && leave()), passive);
  scroller.addEventListener("touchmove", leave, passive);
  scroller.addEventListener("keydown", ({ key }) => void (AWAY.includes(key) && leave()), { signal });
  // Only a press on the scrollbar has the scroller itself as its target.
  scroller.addEventListener("pointerdown", ({ target }) => void (target === scroller && leave()), passive);
  scroller.addEventListener(
    "scroll",
    () => {
      if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_PX) set(true);
    },
    passive,
  );
  const grown = new ResizeObserver(() => {
    toEnd();
    const isWhole = scroller.scrollHeight <= scroller.clientHeight;
    if (isWhole === followed.isWhole) return;
    followed.isWhole = isWhole;
    touch(followed);
  });
  grown.observe(scroller);
  if (scroller.firstElementChild) grown.observe(scroller.firstElementChild);
  const forget = afterRedraw(toEnd);
  return followed;
}
