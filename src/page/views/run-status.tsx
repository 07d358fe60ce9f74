// The status of a run: a mark and a word, so that colour is never all there is.

import type { RunRecord } from "../../client/client.ts";

export type Status = RunRecord["status"];

const SHOWN: Readonly<Record<Status, { mark: string; word: string; tone: string }>> = {
  pending: { mark: "○", word: "Waits for a slot", tone: "" },
  running: { mark: "●", word: "Running", tone: "now" },
  success: { mark: "✓", word: "Done", tone: "good" },
  interrupted: { mark: "?", word: "Waits for an answer", tone: "warn" },
  cancelled: { mark: "⊘", word: "Cancelled", tone: "" },
  error: { mark: "✗", word: "Failed", tone: "bad" },
};

export const STATUSES = Object.keys(SHOWN) as Status[];
export const wordOf = (status: Status): string => SHOWN[status].word;

export function RunStatus({ status }: { status: Status }) {
  const { mark, word, tone } = SHOWN[status];
  return (
    <span class={`run-status ${tone}`}>
      <span aria-hidden="true">{mark}</span> {word}
    </span>
  );
}
