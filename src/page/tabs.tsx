// Tabs, which show one of several parts.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect } from "preact/hooks";

export interface Tab {
  readonly title: ComponentChildren;
  readonly body: () => ComponentChildren;
}

/** Shows one of several parts. The arrow keys move between the tabs. */
export function Tabs(props: {
  label: string;
  tabs: Readonly<Record<string, Tab>>;
  current: string;
  onChange: (name: string) => void;
}) {
  const { tabs, onChange } = props;
  const id = useId();
  const names = Object.keys(tabs);
  const current = tabs[props.current] ? props.current : (names[0] ?? "");
  // On a phone, not all tabs may fit, so scroll to the selected one.
  useLayoutEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [id, current]);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = names[(names.indexOf(current) + step + names.length) % names.length] ?? current;
    onChange(next);
    document.getElementById(`${id}-${next}`)?.focus();
  };
  return (
    <>
      <div role="tablist" aria-label={props.label} class="tabs">
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === current}
            aria-controls={`${id}-panel`}
            tabIndex={name === current ? 0 : -1}
            onClick={() => onChange(name)}
            onKeyDown={move}
          >
            {tabs[name]?.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`} class="tab-panel">
        {tabs[current]?.body()}
      </div>
    </>
  );
}
