// Where a person reads in a conversation: at a message that an address names, or where they were before.

import { indexIn } from "../lib/search.ts";

/** A child of the list of messages, and how far its top is below that of the box that scrolls, in pixels. */
interface ScrollPosition {
  readonly child: number;
  readonly below: number;
}

const STORED = "skein.places";

/** By thread, in this tab; the one that was left first makes room for the next. */
const places = new Map<string, ScrollPosition>(stored());
const MAX_PLACES = 100;

/** Undefined for a person who reads at the end. */
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

/** A reload finds them again. */
export const storePlaces = (): void => sessionStorage.setItem(STORED, JSON.stringify([...places]));

function stored(): [string, ScrollPosition][] {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
  } catch {
    return [];
  }
}

export const hasPlace = (thread: string): boolean => places.has(thread);

/** False while the message is not drawn. */
export function returnTo(thread: string, scroller: HTMLElement): boolean {
  const place = places.get(thread);
  const at = place && childrenOf(scroller)[place.child];
  if (!at) return false;
  // Heights of what was out of sight are guesses until it is drawn.
  for (let round = 0; round < 3; round++)
    scroller.scrollTop += at.getBoundingClientRect().top - scroller.getBoundingClientRect().top - place.below;
  return true;
}

/** Brings the message into sight, with the words marked and the focus on it. False while it is not drawn. */
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
 * Marks the words again while what they lie in is drawn in other elements, as code is when it gets its colours. Returns the function
 * that ends it.
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

/** Words may begin in one element and end in another: those of bold text, and of coloured code. */
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

/** Where the character at `index` of all texts is; `after`: what is added to it there. */
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
