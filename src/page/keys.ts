// Single-letter keys. Users of speech input and users with unsteady hands can turn these keys off.

import { useEffect } from "preact/hooks";
import type { Texts } from "./texts/en.ts";
import { t } from "./texts.ts";

const SETTING = "skein.keys";

export const areKeysOn = (): boolean => localStorage.getItem(SETTING) !== "off";
export const setKeys = (isOn: boolean): void => localStorage.setItem(SETTING, isOn ? "on" : "off");

/** Returns the label of a key on a keyboard for the page's language. */
export const nameOfKey = (key: string): string => t().keys.names[key] ?? key;

/** `Alt + Enter`. */
export const nameOfKeys = (...keys: readonly string[]): string => keys.map(nameOfKey).join(" + ");

/** The action of a key. The page's texts describe each action in each language. */
type KeyCommand = keyof Texts["keys"]["commands"];

interface KeyBinding {
  readonly command: KeyCommand;
  readonly act: () => void;
}

/** The bindings by key, or by two keys in sequence such as `g i`. The most recent binding of a key hides earlier ones. */
const bound = new Map<string, KeyBinding[]>();
let before = "";

/** Returns the keys that are currently bound, with their labels. */
export const boundKeys = (): ({ readonly keys: string } & KeyBinding)[] =>
  [...bound].flatMap(([keys, [first]]) => (first ? [{ keys, ...first }] : []));

/** Binds a key, or two keys separated by a space, while the component is mounted. */
export function useKey(keys: string, command: KeyCommand, act: () => void): void {
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

/**
 * Returns the letter that the user pressed as a command. Returns undefined in a text field, or with Ctrl, Alt or Meta.
 */
export function letterOf(event: KeyboardEvent): string | undefined {
  if (!areKeysOn() || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey)
    return undefined;
  const at = event.target;
  if (at instanceof Element && at.closest("input, textarea, select, [contenteditable]")) return undefined;
  return event.key.length === 1 ? event.key : undefined;
}

let isByLetter = false;

/**
 * Returns whether the last user action was such a command. If so, the next letter that the user types is not meant as
 * text.
 */
export const wasByLetter = (): boolean => isByLetter;

/** Listens to the keyboard. Returns a function that stops listening. */
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
