// A call that a front end must execute. The user can provide the result instead.

import { may } from "../session.ts";
import { t } from "../texts.ts";
import { CallArguments } from "./asked.tsx";
import { type BodyProps, useDraft } from "./question-body.ts";
import { Reply } from "./question-reply.tsx";

export function ClientTool({ ask, isOff, answer }: BodyProps) {
  const draft = useDraft(ask);
  return (
    <>
      <CallArguments args={ask.args} onSeen={() => {}} />
      {may("run") && (
        <Reply
          draft={draft}
          label={t().question.result}
          send={t().question.sendResult}
          isNeeded
          isOff={isOff}
          onSend={(message) => answer({ decision: "respond", message })}
        >
          <button type="button" disabled={isOff} onClick={() => void answer({ decision: "deny" })}>
            {t().question.impossible}
          </button>
        </Reply>
      )}
    </>
  );
}
