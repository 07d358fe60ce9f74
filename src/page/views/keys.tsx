// The keys that do something, and whether single letters do.

import { useState } from "preact/hooks";
import { Dialog } from "../components.tsx";
import { areKeysOn, boundKeys, setKeys } from "../keys.ts";

const ALWAYS = [
  { keys: "Ctrl + K", label: "Search everything: conversations, messages, agents, views and actions" },
  { keys: "Enter", label: "Send" },
  { keys: "Shift + Enter", label: "A new line" },
  { keys: "Alt + Enter", label: "Queue the message while a run works" },
  { keys: "Esc", label: "Stop after this step; twice: now" },
  { keys: "a", label: "Allow the focused question" },
  { keys: "d", label: "Deny the focused question" },
];

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const [isOn, setOn] = useState(areKeysOn);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="keys">
        {[...ALWAYS, ...boundKeys()].map(({ keys, label }) => (
          <div key={keys}>
            <dt>{keys.split(" ").map((key) => (key === "+" ? " + " : <kbd key={key}>{key}</kbd>))}</dt>
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
        Single letters do something when no field has the focus
      </label>
    </Dialog>
  );
}
