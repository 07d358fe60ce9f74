// The arguments of a call that a person must decide on: whole, with nothing hidden in them.

import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { visible } from "../components.tsx";
import { exact } from "../exact.ts";

export interface AskedProps {
  readonly args: Readonly<Record<string, unknown>>;
  /** Called when the end has come into sight. */
  readonly onSeen: () => void;
}

export function Asked({ args, onSeen }: AskedProps) {
  const end = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) onSeen();
    });
    if (end.current) watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [onSeen]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it too.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset holds controls.
    <div class="asked" role="group" tabIndex={0} aria-label="Arguments">
      <dl>
        {Object.entries(args).map(([name, value]) => (
          <div key={name} class={isLong(value) ? "long" : ""}>
            <dt>{visible(name)}</dt>
            <dd>
              <Exact text={textOf(value)} />
            </dd>
          </div>
        ))}
      </dl>
      {Object.keys(args).length === 0 && <p class="empty">Without arguments.</p>}
      <span ref={end} class="end" />
    </div>
  );
}

/** A text in which what cannot be seen is named. */
export const Exact = ({ text }: { text: string }) =>
  h(
    "bdi",
    { class: "exact" },
    ...exact(text).map((piece) => (typeof piece === "string" ? piece : h("mark", null, `⟨${piece.mark}⟩`))),
  );

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

const isLong = (value: unknown) => typeof value === "object" || String(value).length > 40;
