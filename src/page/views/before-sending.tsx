// Asks how to use a message that is sent while the agent waits for answers.

import type { Interrupt } from "../../client/client.ts";
import { Action, Dialog, visible } from "../components.tsx";
import { t } from "../texts.ts";
import { titleOf } from "./question.tsx";

interface BeforeSendingProps {
  readonly asks: readonly Interrupt[];
  readonly onDeny: () => Promise<void>;
  readonly onWithdraw: () => void;
  readonly onClose: () => void;
}

export function BeforeSending({ asks, onDeny, onWithdraw, onClose }: BeforeSendingProps) {
  const words = t().beforeSending;
  return (
    <Dialog title={words.title(asks.length)} onClose={onClose}>
      <ul>
        {asks.map((ask) => (
          <li key={ask.id}>{visible(titleOf(ask))}</li>
        ))}
      </ul>
      <div class="choices">
        <button
          type="button"
          class="primary"
          onClick={() => {
            onClose();
            document.querySelector(".questions")?.scrollIntoView({ block: "nearest" });
          }}
        >
          {words.answer}
        </button>
        <Action onClick={onDeny}>{words.deny}</Action>
        <button type="button" onClick={onWithdraw}>
          {words.withdraw(asks.length)}
        </button>
      </div>
    </Dialog>
  );
}
