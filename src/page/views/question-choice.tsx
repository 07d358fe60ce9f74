// A question of the agent: its options, or an answer in the user's own words.

import { useState } from "preact/hooks";
import { visible } from "../components.tsx";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { Exact } from "./exact-text.tsx";
import { type BodyProps, useDraft } from "./question-body.ts";
import { Reply } from "./question-reply.tsx";

export function Choice({ ask, isOff, answer }: BodyProps) {
  const draft = useDraft(ask);
  const { options = [], one_of_options: isClosedList } = ask;
  const words = t().question;
  const isSeveral = ask.args.kind === "multi_select";
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const respond = (message: string) => answer({ decision: "respond", message });
  const toggle = (option: string) =>
    setChosen(chosen.includes(option) ? chosen.filter((each) => each !== option) : [...chosen, option]);
  const none = (
    <button type="button" disabled={isOff} onClick={() => void answer({ decision: "deny" })}>
      {words.noAnswer}
    </button>
  );
  if (!may("run")) return <p class="empty">{options.map((option) => `• ${visible(option)}`).join("  ")}</p>;
  return (
    <div class="choice">
      {isSeveral ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void respond(options.filter((option) => chosen.includes(option)).join(", "));
          }}
        >
          {options.map((option) => (
            <label key={option} class="check">
              <input type="checkbox" checked={chosen.includes(option)} onChange={() => toggle(option)} />
              <Exact text={option} />
            </label>
          ))}
          <button type="submit" class="primary" disabled={isOff || chosen.length === 0}>
            {words.answer}
          </button>
        </form>
      ) : (
        options.length > 0 && (
          <div class="row">
            {options.map((option) => (
              <button key={option} type="button" disabled={isOff} onClick={() => void respond(option)}>
                <Exact text={option} />
              </button>
            ))}
          </div>
        )
      )}
      {isClosedList ? (
        <div class="row">{none}</div>
      ) : (
        <Reply
          draft={draft}
          label={options.length > 0 ? words.ownWords : words.yourAnswer}
          send={words.answer}
          isNeeded
          isOff={isOff}
          onSend={respond}
        >
          {none}
        </Reply>
      )}
    </div>
  );
}
