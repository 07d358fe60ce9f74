// The reading position in a conversation: the message in the URL, or the user's previous position.

import { indexIn } from "../lib/search.ts";

/** A child of the list of messages, and the distance in pixels between its top and the top of the scrolling box. */
interface ScrollPosition {
  readonly child: number;
  readonly below: number;
}

const STORED = "skein.places";

/** The positions by thread, in this tab. A new entry replaces the oldest one. */
const places = new Map<string, ScrollPosition>(stored());
const MAX_PLACES = 100;

/** Stores no position for a user who is reading at the end. */
export function keepPlace(thread: string, scroller: HTMLElement, isAtEnd: boolean): void {
  places.delete(thread);
  if (isAtEnd) return;
  const { top } = scroller.getBoundingClientRect();
  const child = childrenOf(scroller).findIndex((each) => each.getBoundingClientRect().bottom > top);
  const at = childrenOf(scroller)[child];
  if (!at) return;
  places.set(thread, { child, below: at.getBoundingClientRect().top - top });
  for (const oldest of [...places.keys()].slice(0, -MAX_PLACES)) places.delete(oldest);
}

/** Stores the positions for a reload. */
export const storePlaces = (): void => sessionStorage.setItem(STORED, JSON.stringify([...places]));

function stored(): [string, ScrollPosition][] {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
  } catch {
    return [];
  }
}

export const hasPlace = (thread: string): boolean => places.has(thread);

/** Returns false if the message has not been drawn yet. */
export function returnTo(thread: string, scroller: HTMLElement): boolean {
  const place = places.get(thread);
  const at = place && childrenOf(scroller)[place.child];
  if (!at) return false;
  // The browser estimates the heights of invisible elements, so each round brings the position closer to the target.
  for (let round = 0; round < 3; round++)
    scroller.scrollTop += at.getBoundingClientRect().top - scroller.getBoundingClientRect().top - place.below;
  return true;
}

/** Scrolls to the message, marks the words and sets the focus. Returns false if the message has not been drawn yet. */
export function showMessage(message: string, words: string | undefined, scroller: HTMLElement): boolean {
  const at = messageIn(scroller, message);
  const found = at && mark(at, words);
  if (!at || (words && !found && at.textContent === "")) return false;
  at.classList.add("found");
  at.tabIndex = -1;
  at.focus({ preventScroll: true });
  for (let round = 0; round < 3; round++) {
    const { top, height } = (found ?? at).getBoundingClientRect();
    const box = scroller.getBoundingClientRect();
    scroller.scrollTop += top - box.top - Math.max(16, (box.height - height) / 3);
  }
  return true;
}

/**
 * Marks the words again when their elements are replaced, for example when code is highlighted. Returns a function that
 * stops this.
 */
export function keepMarked(message: string, words: string | undefined, scroller: HTMLElement): () => void {
  const at = messageIn(scroller, message);
  const drawn = new MutationObserver(() => void (at && mark(at, words)));
  if (at && words) drawn.observe(at, { childList: true, subtree: true });
  return () => drawn.disconnect();
}

const messageIn = (scroller: HTMLElement, message: string) =>
  scroller.querySelector<HTMLElement>(`[data-message="${CSS.escape(message)}"]`);

function mark(element: HTMLElement, words: string | undefined): Range | undefined {
  const found = words ? rangeOf(element, words) : undefined;
  CSS.highlights?.delete("found");
  if (found) CSS.highlights?.set("found", new Highlight(found));
  return found;
}

/** The words can start in one element and end in another, as in bold text or highlighted code. */
function rangeOf(element: HTMLElement, words: string): Range | undefined {
  const wanted = words.trim().toLowerCase();
  const texts: Text[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  const begin = indexIn(texts.map(({ data }) => data.toLowerCase()).join(""), wanted);
  if (begin < 0) return undefined;
  const range = new Range();
  range.setStart(...placeIn(texts, begin));
  range.setEnd(...placeIn(texts, begin + wanted.length - 1, 1));
  return range;
}

/** Returns the text node and offset of the character at `index` across all texts. `after` is added to the offset. */
function placeIn(texts: readonly Text[], index: number, after = 0): [Text, number] {
  let left = index;
  for (const text of texts) {
    if (left < text.length) return [text, left + after];
    left -= text.length;
  }
  const last = texts.at(-1) as Text;
  return [last, last.length];
}

const childrenOf = (scroller: HTMLElement) =>
  [...(scroller.firstElementChild?.children ?? [])] as HTMLElement[];
