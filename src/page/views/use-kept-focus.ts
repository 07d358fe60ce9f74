// Moves the focus when the focused button disappears: to the next open question, or to the message field when no
// question is left.

import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { isTouch } from "../pointer.ts";

/** The parts of a conversation whose buttons disappear after use. */
const PLACES = ".questions, .composer, .status-line";
const NEXT = ["article.question button:enabled", ".questions button:enabled", ".composer textarea"];

export function useKeptFocus(conversation: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current: box } = conversation;
    if (!box) return;
    let focused: Element | undefined;
    const removals = new MutationObserver(() => {
      if (!focused || focused.isConnected) return;
      focused = undefined;
      // On touch devices, setting the focus would open the on-screen keyboard.
      if (document.activeElement === document.body && !isTouch()) nextIn(box)?.focus();
    });
    const onFocus = ({ target }: FocusEvent) => {
      removals.disconnect();
      focused = target instanceof Element && target.closest(PLACES) ? target : undefined;
      if (focused) removals.observe(box, { childList: true, subtree: true });
    };
    box.addEventListener("focusin", onFocus);
    return () => {
      box.removeEventListener("focusin", onFocus);
      removals.disconnect();
    };
  }, [conversation]);
}

function nextIn(box: HTMLElement): HTMLElement | null {
  for (const selector of NEXT) {
    const found = box.querySelector<HTMLElement>(selector);
    if (found) return found;
  }
  return null;
}
