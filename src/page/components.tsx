// Small components that the views share. They show all text from the server as text, never as HTML.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyText } from "./clipboard.ts";
import { messageOf } from "./session.ts";
import { once, t } from "./texts.ts";

/** The text for an empty list, which explains what will appear there and how it gets there. */
export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;

/** An error message from the server. */
export const Problem = ({ children }: { children: ComponentChildren }) =>
  children ? (
    <p class="problem" role="alert">
      {children}
    </p>
  ) : null;

/** Invisible characters, and characters that change how a text is displayed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression must match control characters.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu;

/**
 * A command, name or argument, shown exactly. Invisible characters appear as `⟨U+202E⟩`, and its text direction does
 * not affect the surrounding text.
 */
export const Plain = ({ children }: { children: string }) => <bdi>{visible(children)}</bdi>;

export const visible = (text: string): string =>
  text.replace(
    UNSEEN,
    (char) => `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );

const time = once((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }));
const ago = once((locale) => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));
const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

export const fullTime = (at: string): string => time().format(new Date(at));

/** A relative time, such as "2 hours ago". Its title is the full date. */
export function Time({ at }: { at: string }) {
  const ms = Date.parse(at) - Date.now();
  const [unit, size] = UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ["second", 1000];
  const far = Math.abs(ms) > 7 * 86_400_000;
  const text = far ? fullTime(at) : ago().format(Math.round(ms / size), unit);
  return (
    <time dateTime={at} title={fullTime(at)}>
      {text}
    </time>
  );
}

const SAID_MS = 2_000;

/** Copies a text and briefly confirms it. If the browser refuses, it selects the text for the user. */
export function Copy(props: { text: () => string | Promise<string>; label?: string; class?: string }) {
  const { text, label = t().copy.copy } = props;
  const [said, setSaid] = useState("");
  const [refused, setRefused] = useState<string>();
  const copy = async () => {
    try {
      const words = await text();
      if (await copyText(words)) setSaid(t().copy.copied);
      else setRefused(words);
    } catch (error) {
      setSaid(messageOf(error));
    }
    setTimeout(() => setSaid(""), SAID_MS);
  };
  return (
    <>
      <button type="button" class={props.class ?? "quiet"} onClick={copy}>
        {said || label}
      </button>
      {refused !== undefined && <ByHand text={refused} onClose={() => setRefused(undefined)} />}
    </>
  );
}

const ByHand = ({ text, onClose }: { text: string; onClose: () => void }) => (
  <Dialog title={t().copy.byHand} class="by-hand" onClose={onClose}>
    <textarea
      readOnly
      rows={8}
      aria-label={t().copy.byHand}
      value={text}
      autoFocus
      onFocus={({ currentTarget }) => currentTarget.select()}
    />
  </Dialog>
);

/** A button whose action can fail. It is disabled during the action and shows errors next to it. */
export function Action(props: {
  onClick: () => Promise<unknown>;
  children: ComponentChildren;
  class?: string;
  label?: string;
  isOff?: boolean;
  /** For a toggle button: true if it is pressed. */
  isPressed?: boolean;
}) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    setProblem("");
    try {
      await props.onClick();
    } catch (error) {
      setProblem(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button
        type="button"
        class={props.class}
        aria-label={props.label}
        aria-disabled={isBusy || undefined}
        aria-pressed={props.isPressed}
        disabled={props.isOff}
        onClick={run}
      >
        {props.children}
      </button>
      <Problem>{problem}</Problem>
    </>
  );
}

/** A button that opens the file chooser. `label` is its accessible name if it shows no text. */
export function FileButton(props: {
  label: string;
  onFiles: (files: readonly File[]) => void;
  children: ComponentChildren;
}) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        class="quiet"
        aria-label={props.label}
        title={props.label}
        onClick={() => input.current?.click()}
      >
        {props.children}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={props.label}
        onChange={({ currentTarget }) => {
          props.onFiles([...(currentTarget.files ?? [])]);
          // Lets the user choose the same file again.
          currentTarget.value = "";
        }}
      />
    </>
  );
}

/** A modal dialog. Escape also calls `onClose`. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Opens before the next key press can reach the page below.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={props.class} aria-label={props.title} onClose={props.onClose}>
      <header>
        <h2>{props.title}</h2>
        <button
          type="button"
          class="quiet"
          aria-label={t().shared.close}
          onClick={() => dialog.current?.close()}
        >
          ✕
        </button>
      </header>
      {props.children}
    </dialog>
  );
}

/** A text shown unchanged in a scrolling box. `atEnd` keeps the end visible while the text grows. */
export const Pre = ({ children, atEnd }: { children: string; atEnd?: boolean }) => (
  <pre
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboard users must be able to focus it.
    tabIndex={0}
    ref={(pre) => void (atEnd && pre?.scrollTo(0, pre.scrollHeight))}
  >
    {children}
  </pre>
);

/**
 * Reads a value from the server in an effect. Returns the value or an error. Reads again if a dependency changes, and
 * after `reload`.
 */
export function useRead<T>(read: (signal: AbortSignal) => Promise<T>, dependencies: readonly unknown[]) {
  const [state, setState] = useState<{ value?: T; problem?: string }>({});
  const [count, setCount] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the caller passes the dependencies of its `read`.
  useEffect(() => {
    const ending = new AbortController();
    read(ending.signal).then(
      (value) => ending.signal.aborted || setState({ value }),
      (error) => ending.signal.aborted || setState((before) => ({ ...before, problem: messageOf(error) })),
    );
    return () => ending.abort();
  }, [...dependencies, count]);
  return { ...state, reload: () => setCount((before) => before + 1) };
}
