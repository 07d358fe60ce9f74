// Where a person reads in a conversation: at a message that an address names, or where they were before.

import { indexIn } from "../lib/search.ts";

/** A child of the list of messages, and how far its top is below that of the box that scrolls, in pixels. */
interface Place {
  readonly child: number;
  readonly below: number;
}

const STORED = "skein.places";

/** By thread, in this tab; the one that was left first makes room for the next. */
const places = new Map<string, Place>(stored());
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

function stored(): [string, Place][] {
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
  const at = scroller.querySelector<HTMLElement>(`[data-message="${CSS.escape(message)}"]`);
  const found = at && words ? rangeOf(at, words) : undefined;
  if (!at || (words && !found && at.textContent === "")) return false;
  at.classList.add("found");
  at.tabIndex = -1;
  at.focus({ preventScroll: true });
  CSS.highlights?.delete("found");
  if (found) CSS.highlights?.set("found", new Highlight(found));
  for (let round = 0; round < 3; round++) {
    const { top, height } = (found ?? at).getBoundingClientRect();
    const box = scroller.getBoundingClientRect();
    scroller.scrollTop += top - box.top - Math.max(16, (box.height - height) / 3);
  }
  return true;
}

function rangeOf(element: HTMLElement, words: string): Range | undefined {
  const wanted = words.trim().toLowerCase();
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const at = indexIn((node.textContent ?? "").toLowerCase(), wanted);
    if (at < 0) continue;
    const range = new Range();
    range.setStart(node, at);
    range.setEnd(node, Math.min(at + wanted.length, node.textContent?.length ?? 0));
    return range;
  }
  return undefined;
}

const childrenOf = (scroller: HTMLElement) =>
  [...(scroller.firstElementChild?.children ?? [])] as HTMLElement[];
