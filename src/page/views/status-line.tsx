// What happens now, in a line: seen by all, and read out by screen readers.

import { useRef } from "preact/hooks";
import type { Page } from "../../client/cells.ts";
import type { PhaseName } from "../../client/phase.ts";
import { visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import type { Live } from "../live.ts";

const WORDS: Readonly<Record<PhaseName, (of: string) => string>> = {
  idle: () => "",
  processing: () => "Working",
  calling_model: () => "Answering",
  executing_tool: (of) => `Running ${of}`,
  waiting_for_subagent: (of) => `Waiting for ${of}`,
  waiting_for_permission: (of) => `Waits for your permission: ${of}`,
  waiting_for_answer: () => "Waits for your answer",
  waiting_for_tool: (of) => `Waits for the result of ${of}`,
};

export function StatusLine({ live }: { live: Live }) {
  const { connection, waiting } = useTouched(live);
  const run = useTouched(live.page.run);
  const { asks } = useTouched(live.page);
  const wasActive = useRef(false);
  wasActive.current ||= run.isActive;
  const isLost = connection === "reconnecting";
  const text = isLost
    ? "Reconnecting: the server does not answer. Nothing is lost."
    : textOf(live.page, asks.length, wasActive.current);
  return (
    <div class="status-line">
      <p role="status" class={isLost ? "lost" : run.isActive ? "active" : asks.length > 0 ? "asking" : ""}>
        {text}
      </p>
      {waiting.length > 0 && (
        <ul class="waiting">
          {waiting.map(({ id, as, text }) => (
            <li key={id}>
              <b>{as === "queued" ? "Queued" : "Read before the next step"}</b> <span>{visible(text)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function textOf({ run: { phase, isActive } }: Page, asks: number, wasActive: boolean): string {
  if (!isActive && asks > 0) return "Waits for your answer";
  if (!isActive) return wasActive ? "Done" : "";
  return WORDS[phase.name](visible(phase.of?.join(", ") ?? "")) || "Working";
}
