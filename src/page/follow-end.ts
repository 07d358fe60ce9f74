// Keeps the end of what grows in sight until a person moves away, and again once they are back at the end. Only what a person
// does counts: positions alone mislead, since heights of what is out of sight are guesses.

import { afterRedraw, touch } from "./frame.ts";

export interface FollowedEnd {
  isFollowing: boolean;
  /** Nothing lies above or below what is seen. */
  isWhole: boolean;
  /** Goes to the end and stays there. */
  goToEnd(): void;
  /** Stays where it is while more comes. */
  leave(): void;
  close(): void;
}

/** So close counts as the end. */
const NEAR_PX = 8;
const AWAY = ["PageUp", "Home", "ArrowUp"];

/** Touches what it returns when following begins or ends, and when the whole begins or ceases to fit. Closed by the caller. */
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
  // The scrollbar.
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
