// Opens a conversation at the message in the URL, or at the user's last position.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import type { FollowedEnd } from "../follow-end.ts";
import { hasPlace, keepMarked, keepPlace, returnTo, showMessage, storePlaces } from "../places.ts";
import type { Route } from "../routes.ts";

interface PlaceOptions {
  readonly thread: string;
  readonly route: Route;
  readonly scroller: RefObject<HTMLElement | null>;
  readonly end: FollowedEnd | undefined;
}

export function usePlace({ thread, route, scroller, end }: PlaceOptions): void {
  const { message, words } = route.view === "thread" ? route : {};
  useLayoutEffect(() => {
    const { current: box } = scroller;
    const keep = () => void (box && end && keepPlace(thread, box, end.isFollowing));
    const onLeave = () => {
      keep();
      storePlaces();
    };
    addEventListener("pagehide", onLeave);
    return () => {
      removeEventListener("pagehide", onLeave);
      keep();
    };
  }, [thread, end, scroller]);
  useEffect(() => {
    const { current: box } = scroller;
    if (!box || !end || (message === undefined && !hasPlace(thread))) return undefined;
    let endMarks = () => {};
    const show = () => (message === undefined ? returnTo(thread, box) : showMessage(message, words, box));
    const tryNow = () => {
      if (!show()) return;
      end.leave();
      drawn.disconnect();
      if (message !== undefined) endMarks = keepMarked(message, words, box);
    };
    const drawn = new MutationObserver(tryNow);
    drawn.observe(box, { childList: true, subtree: true });
    tryNow();
    // A user who scrolls has chosen a position.
    const stop = () => drawn.disconnect();
    box.addEventListener("wheel", stop, { once: true, passive: true });
    return () => {
      drawn.disconnect();
      endMarks();
      box.removeEventListener("wheel", stop);
    };
  }, [thread, message, words, end, scroller]);
}
