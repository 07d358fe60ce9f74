// Single-letter keys. People who speak to their computer, or whose fingers slip, switch them off.

import { useEffect } from "preact/hooks";
import type { Texts } from "./texts/en.ts";
import { t } from "./texts.ts";

const SETTING = "skein.keys";

export const areKeysOn = (): boolean => localStorage.getItem(SETTING) !== "off";
export const setKeys = (isOn: boolean): void => localStorage.setItem(SETTING, isOn ? "on" : "off");

/** What stands on the key, on a keyboard for the language of the page. */
export const nameOfKey = (key: string): string => t().keys.names[key] ?? key;

/** `Alt + Enter`. */
export const nameOfKeys = (...keys: readonly string[]): string => keys.map(nameOfKey).join(" + ");

/** What a key does, as the list of keys names it in each language. */
type Command = keyof Texts["keys"]["commands"];

interface Bound {
  readonly command: Command;
  readonly act: () => void;
}

/** By the key, or the keys one after the other, as in `g i`. A view that binds a key again hides the one before. */
const bound = new Map<string, Bound[]>();
let before = "";

/** The keys that can be pressed now, as people read them. */
export const boundKeys = (): ({ readonly keys: string } & Bound)[] =>
  [...bound].flatMap(([keys, [first]]) => (first ? [{ keys, ...first }] : []));

/** Acts on the key, or the two keys with a space between, while the component is mounted. */
export function useKey(keys: string, command: Command, act: () => void): void {
  useEffect(() => {
    const mine = { command, act };
    bound.set(keys, [mine, ...(bound.get(keys) ?? [])]);
    return () => {
      const others = (bound.get(keys) ?? []).filter((each) => each !== mine);
      if (others.length > 0) bound.set(keys, others);
      else bound.delete(keys);
    };
  }, [keys, command, act]);
}

/** The single letter of an event that means a command: not in a field, and without other keys held. */
export function letterOf(event: KeyboardEvent): string | undefined {
  if (!areKeysOn() || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
    return undefined;
  const at = event.target;
  if (at instanceof Element && at.closest("input, textarea, select, [contenteditable]")) return undefined;
  return event.key.length === 1 ? event.key : undefined;
}

let isByLetter = false;

/** Whether the last thing that a person did was such a command: then the next one is not text. */
export const wasByLetter = (): boolean => isByLetter;

/** Listens to the keyboard. Returns the function that ends it. */
export function followKeys(): () => void {
  const onKey = (event: KeyboardEvent) => {
    isByLetter = false;
    const letter = letterOf(event);
    const isOver = document.querySelector("dialog[open]") !== null;
    if (letter === undefined || isOver) {
      before = "";
      return;
    }
    const [found] = bound.get(`${before} ${letter}`) ?? bound.get(letter) ?? [];
    before = letter;
    if (!found) return;
    before = "";
    event.preventDefault();
    isByLetter = true;
    found.act();
  };
  const onPointer = () => {
    isByLetter = false;
  };
  addEventListener("keydown", onKey);
  addEventListener("pointerdown", onPointer);
  return () => {
    removeEventListener("keydown", onKey);
    removeEventListener("pointerdown", onPointer);
  };
}
