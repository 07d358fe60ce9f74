// The palette's search field. It is loaded with the first view, so that it receives the first key pressed after Ctrl+K.
// Its results are loaded on demand.

import { useId, useRef, useState } from "preact/hooks";
import { Dialog } from "../components.tsx";
import { lazy } from "../lazy.tsx";
import { t } from "../texts.ts";

const PaletteChoices = lazy(async () => (await import("./palette-choices.tsx")).PaletteChoices);

export function Palette({ onClose }: { onClose: () => void }) {
  const words = t().palette;
  const id = useId();
  const [q, setQ] = useState("");
  const [chosen, setChosen] = useState<string>();
  const onKey = useRef<((event: KeyboardEvent) => void) | undefined>(undefined);
  return (
    <Dialog title={words.title} class="palette" onClose={onClose}>
      <input
        role="combobox"
        aria-label={words.search}
        aria-expanded={chosen !== undefined}
        aria-controls={id}
        aria-activedescendant={chosen}
        placeholder={words.search}
        maxLength={256}
        autoFocus
        value={q}
        onInput={({ currentTarget }) => setQ(currentTarget.value)}
        onKeyDown={(event) => onKey.current?.(event)}
      />
      <PaletteChoices id={id} q={q} onKey={onKey} onChosen={setChosen} onClose={onClose} />
    </Dialog>
  );
}
