// A single answer for all calls of a step that wait for approval, with the list of these calls.

import { useState } from "preact/hooks";
import type { Answer, Interrupt } from "../../client/client.ts";
import { Action, Dialog, Plain } from "../components.tsx";
import { t } from "../texts.ts";
import { CallArguments } from "./asked.tsx";

interface AnswerAllProps {
  readonly asks: readonly Interrupt[];
  /** Rejects with the server's error. */
  readonly onAnswer: (answers: readonly Answer[]) => Promise<void>;
}

export function AnswerAll({ asks, onAnswer }: AnswerAllProps) {
  const [decision, setDecision] = useState<"approve" | "deny">();
  const words = t().answerAll;
  return (
    <p class="row all">
      <button type="button" onClick={() => setDecision("approve")}>
        {words.approve(asks.length)}
      </button>
      <button type="button" onClick={() => setDecision("deny")}>
        {words.deny(asks.length)}
      </button>
      {decision && (
        <Covered asks={asks} decision={decision} onAnswer={onAnswer} onClose={() => setDecision(undefined)} />
      )}
    </p>
  );
}

function Covered(props: AnswerAllProps & { decision: "approve" | "deny"; onClose: () => void }) {
  const { asks, decision, onAnswer, onClose } = props;
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set());
  const label = t().answerAll[decision](asks.length);
  return (
    <Dialog title={label} class="wide" onClose={onClose}>
      {asks.map(({ id, name, args }) => (
        <section key={id}>
          <h3>
            <code>
              <Plain>{name}</Plain>
            </code>
          </h3>
          <CallArguments
            args={args}
            onSeen={() => setSeen((before) => (before.has(id) ? before : new Set([...before, id])))}
          />
        </section>
      ))}
      <p class="row">
        <Action
          class="primary"
          isOff={decision === "approve" && seen.size < asks.length}
          onClick={async () => {
            await onAnswer(asks.map(({ id }) => ({ id, decision })));
            onClose();
          }}
        >
          {label}
        </Action>
      </p>
    </Dialog>
  );
}
