// A page of React without a browser: what a hook gives to its component, whenever it changes.

import { Window } from "happy-dom";
import { createElement } from "react";
import { onTestFinished } from "vitest";

export interface ReactPage<T> {
  /** What the hook gave last. */
  readonly current: T;
  /** Resolves once that fits. */
  until(fits: (current: T) => boolean): Promise<T>;
  /** As by leaving the page. */
  close(): void;
}

/** A page on which `hook` is used; closed when the test has finished. */
export async function reactPage<T>(hook: () => T): Promise<ReactPage<T>> {
  const window = new Window();
  // React looks for a browser when it is loaded.
  Object.assign(globalThis, { window, document: window.document });
  const { createRoot } = await import("react-dom/client");
  const values: T[] = [];
  const waiting = new Set<() => void>();
  function Page() {
    values.splice(0, values.length, hook());
    for (const check of waiting) queueMicrotask(check);
    return null;
  }
  const element = window.document.createElement("div");
  const root = createRoot(element as unknown as Element);
  let isOpen = true;
  const close = () => {
    if (isOpen) root.unmount();
    isOpen = false;
  };
  onTestFinished(close);
  root.render(createElement(Page));

  const until = (fits: (current: T) => boolean) =>
    new Promise<T>((resolve) => {
      const check = () => {
        const [current] = values;
        if (values.length === 0 || !fits(current as T)) return;
        waiting.delete(check);
        resolve(current as T);
      };
      waiting.add(check);
      check();
    });
  await until(() => true);
  return {
    get current() {
      return values[0] as T;
    },
    until,
    close,
  };
}
