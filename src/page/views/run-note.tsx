// A note about a run, shown between the messages together with the available actions.

import { useContext, useState } from "preact/hooks";
import type { NoteCell } from "../../client/cells.ts";
import type { Outcome } from "../../client/outcome.ts";
import { Action, Dialog } from "../components.tsx";
import type { RunChoice } from "../outbox.ts";
import { t } from "../texts.ts";
import { Markdown } from "./markdown.tsx";
import { chosenOf, Picker, useAgents } from "./picker.tsx";
import { type MessageActions, ThreadOf } from "./thread-of.ts";

/** The outcomes for which the page offers to try again. */
const WORTH_A_TRY: ReadonlySet<Outcome | undefined> = new Set<Outcome>(["failed", "empty"]);

export function RunNote({ cell: { tone, text, outcome, reason } }: { cell: NoteCell }) {
  const { actions } = useContext(ThreadOf);
  const words = t().messages;
  const known = knownText(tone, outcome, reason);
  return (
    <div class={`run-note ${tone}`} role={tone === "error" ? "alert" : undefined}>
      {tone !== "quiet" && <b>{words.tones[tone]}</b>}
      <Markdown text={known ?? text} isWhole />
      {known !== undefined && (tone === "error" || outcome === undefined) && (
        <div lang="en">
          <Markdown text={text} isWhole />
        </div>
      )}
      {actions && WORTH_A_TRY.has(outcome) && <Again again={actions.again} />}
    </div>
  );
}

/** Returns a translated sentence, or undefined if the page is in the server's language. */
function knownText(tone: NoteCell["tone"], outcome?: Outcome, reason = ""): string | undefined {
  if (tone === "error") return t().errors[reason];
  if (outcome === undefined) return t().warnings[reason];
  const { texts } = t().runNote;
  return texts[reason] ?? texts[outcome];
}

function Again({ again }: Pick<MessageActions, "again">) {
  const [isChoosing, setChoosing] = useState(false);
  const words = t().runNote;
  return (
    <p class="row">
      <Action onClick={() => again({})}>{words.tryAgain}</Action>
      <button type="button" class="quiet" onClick={() => setChoosing(true)}>
        {words.otherModel}
      </button>
      {isChoosing && <Chosen again={again} onClose={() => setChoosing(false)} />}
    </p>
  );
}

function Chosen({ again, onClose }: Pick<MessageActions, "again"> & { onClose: () => void }) {
  const { agent } = useContext(ThreadOf);
  const agents = useAgents();
  const [choice, setChoice] = useState<RunChoice>({});
  const words = t().runNote;
  return (
    <Dialog title={words.otherModel} onClose={onClose}>
      <p class="row">
        <Picker
          agents={agents}
          choice={choice}
          agent={chosenOf(agents, choice.agent ?? agent)}
          onChoose={setChoice}
        />
        <Action
          class="primary"
          onClick={async () => {
            await again(choice);
            onClose();
          }}
        >
          {words.tryAgain}
        </Action>
      </p>
    </Dialog>
  );
}
