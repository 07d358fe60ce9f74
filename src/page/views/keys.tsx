// The list of keys, and the switch for single letters.

import { useState } from "preact/hooks";
import { Dialog } from "../components.tsx";
import { areKeysOn, boundKeys, nameOfKey, setKeys } from "../keys.ts";
import { t } from "../texts.ts";

function alwaysBound() {
  const words = t().keys;
  return [
    { keys: "Ctrl + K", label: words.search },
    { keys: "Enter", label: words.send },
    { keys: "Shift + Enter", label: words.newLine },
    { keys: "Alt + Enter", label: words.queue },
    { keys: "Esc", label: words.stop },
    { keys: "a", label: words.allow },
    { keys: "d", label: words.deny },
  ];
}

/** Returns each key once, with its current meaning if the view binds it. */
function listed() {
  const { commands } = t().keys;
  const now = boundKeys().map(({ keys, command }) => ({ keys, label: commands[command] }));
  return [...alwaysBound().filter(({ keys }) => !now.some((each) => each.keys === keys)), ...now];
}

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const [isOn, setOn] = useState(areKeysOn);
  return (
    <Dialog title={t().keys.title} onClose={onClose}>
      <dl class="keys">
        {listed().map(({ keys, label }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (key === "+" ? " + " : <kbd key={key}>{nameOfKey(key)}</kbd>))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <label class="keys-switch">
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget }) => {
            setKeys(currentTarget.checked);
            setOn(currentTarget.checked);
          }}
        />
        {t().settings.keysOn}
      </label>
    </Dialog>
  );
}
