// What opens and closes by its line.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Whether the page is being printed. Then it is drawn before the browser looks. */
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

/** Opens and closes by its line. On paper it is open. Who uses it keeps whether it is open, since it may change by itself. */
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
