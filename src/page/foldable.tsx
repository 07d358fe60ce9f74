// A section that the user opens and closes with its summary line.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Returns whether the page is being printed. Redraws the component before the browser lays out the printed pages. */
function usePrinting(): boolean {
  const [isPrinting, setPrinting] = useState(false);
  useEffect(() => {
    const begin = () => setPrinting(true);
    const end = () => setPrinting(false);
    addEventListener("beforeprint", begin);
    addEventListener("afterprint", end);
    return () => {
      removeEventListener("beforeprint", begin);
      removeEventListener("afterprint", end);
    };
  }, []);
  return isPrinting;
}

/**
 * A section that opens and closes with its summary line, and is always open in print. The caller keeps the open state,
 * because the state can also change without an action by the user.
 */
export function Foldable(props: {
  class: string;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  line: ComponentChildren;
  children: ComponentChildren;
}) {
  const isPrinting = usePrinting();
  const isOpen = props.isOpen || isPrinting;
  return (
    <details class={props.class} open={isOpen}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button, which the keyboard presses too. */}
      <summary
        onClick={(event) => {
          event.preventDefault();
          props.onToggle(!props.isOpen);
        }}
      >
        {props.line}
      </summary>
      {isOpen && props.children}
    </details>
  );
}
