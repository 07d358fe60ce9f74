// The questions of a thread. Those that one run asks are answered together: what has no answer would be asked again.

import { useState } from "preact/hooks";
import type { Answer, Interrupt } from "../../client/client.ts";
import { Action, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import { answerLater, answerNow, keyOf, later, sendAnswers } from "../questions.ts";
import { AskedIn } from "./asked.tsx";
import { Question, titleOf } from "./question.tsx";

export interface QuestionsProps {
  readonly thread: string;
  readonly asks: readonly Interrupt[];
}

export function Questions({ thread, asks }: QuestionsProps) {
  const runs = [...new Set(asks.map(({ run_id }) => run_id))];
  return (
    <AskedIn.Provider value={thread}>
      {runs.map((run) => (
        <OfRun key={run} thread={thread} run={run} asks={asks.filter(({ run_id }) => run_id === run)} />
      ))}
    </AskedIn.Provider>
  );
}

function OfRun({ thread, run, asks }: QuestionsProps & { readonly run: string }) {
  const [given, setGiven] = useState<Readonly<Record<string, Answer>>>({});
  const put = useTouched(later);
  const answers = asks.flatMap(({ id }) => given[id] ?? []);
  const send = (all: readonly Answer[]) => sendAnswers(thread, run, all);
  const answer = async (one: Answer) => {
    const all = [...answers.filter(({ id }) => id !== one.id), one];
    if (all.length === asks.length) return send(all);
    setGiven({ ...given, [one.id]: one });
    return undefined;
  };
  const change = (id: string) => {
    const { [id]: _, ...others } = given;
    setGiven(others);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: no part of a form; a region would be there twice, beside the conversation too.
    <div class="questions" role="group" aria-label="Questions">
      {asks.map((ask) => {
        const mine = given[ask.id];
        if (mine) return <Given key={ask.id} ask={ask} answer={mine} onChange={() => change(ask.id)} />;
        const key = keyOf(thread, ask);
        if (put.keys.has(key)) return <Put key={ask.id} ask={ask} onOpen={() => answerNow(key)} />;
        return <Question key={ask.id} ask={ask} onAnswer={answer} onLater={() => answerLater(key)} />;
      })}
      {answers.length > 0 && (
        <div class="row together" role="status">
          <span>
            {answers.length} of {asks.length} answered. They are sent together.
          </span>
          <Action onClick={() => send(answers)}>Send now; the others are asked again</Action>
        </div>
      )}
    </div>
  );
}

const WORDS: Readonly<Record<Answer["decision"], string>> = {
  approve: "Allow",
  deny: "Deny",
  edit: "Run as edited",
  respond: "Answer",
};

function Given({ ask, answer, onChange }: { ask: Interrupt; answer: Answer; onChange: () => void }) {
  return (
    <p class="given row">
      <span class="title">{visible(titleOf(ask))}</span>
      <span>
        {WORDS[answer.decision]}
        {answer.message && `: ${visible(answer.message)}`}
      </span>
      <button type="button" class="quiet" onClick={onChange}>
        Change
      </button>
    </p>
  );
}

function Put({ ask, onOpen }: { ask: Interrupt; onOpen: () => void }) {
  return (
    <p class="given row">
      <span class="title">{visible(titleOf(ask))}</span>
      <span>Later</span>
      <button type="button" class="quiet" onClick={onOpen}>
        Answer
      </button>
    </p>
  );
}
