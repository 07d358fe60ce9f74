// The questions of a thread. The questions of one run are answered together, because the run would otherwise repeat the
// unanswered ones.

import type { Answer, Interrupt } from "../../client/client.ts";
import { Action, visible } from "../components.tsx";
import { saveDraft } from "../drafts.ts";
import { useTouched } from "../frame.ts";
import { forgetGiven, given, givenTo, keepGiven } from "../given.ts";
import { answerLater, answerNow, keyOf, later, sendAnswers } from "../questions.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { AnswerAll } from "./answer-all.tsx";
import { AskedIn } from "./asked.tsx";
import { Question, titleOf } from "./question.tsx";

export interface QuestionsProps {
  readonly thread: string;
  readonly asks: readonly Interrupt[];
  /** True if no other question is open here, so its keyboard shortcuts work from anywhere on the page. */
  readonly isOnly?: boolean;
}

export function Questions({ thread, asks, isOnly = false }: QuestionsProps) {
  const runs = [...new Set(asks.map(({ run_id }) => run_id))];
  return (
    <AskedIn.Provider value={thread}>
      {runs.map((run) => (
        <OfRun
          key={run}
          thread={thread}
          run={run}
          isOnly={isOnly}
          asks={asks.filter(({ run_id }) => run_id === run)}
        />
      ))}
    </AskedIn.Provider>
  );
}

function OfRun({ thread, run, asks, isOnly = false }: QuestionsProps & { readonly run: string }) {
  useTouched(given);
  const mineTo = (ask: Interrupt) => givenTo(keyOf(thread, ask));
  const put = useTouched(later);
  const answers = asks.flatMap((ask) => mineTo(ask) ?? []);
  const send = async (all: readonly Answer[]) => {
    await sendAnswers(thread, run, all);
    for (const { id } of all) {
      forgetGiven(keyOf(thread, { id }));
      saveDraft(keyOf(thread, { id }), "");
    }
  };
  /** Sends the answers once every question has been answered. */
  const give = async (some: readonly Answer[]) => {
    const ids = new Set(some.map(({ id }) => id));
    const all = [...answers.filter(({ id }) => !ids.has(id)), ...some];
    if (all.length === asks.length) return send(all);
    for (const one of some) keepGiven(keyOf(thread, one), one);
    return undefined;
  };
  const approvals = asks.filter((ask) => ask.kind === "approval" && !mineTo(ask));
  return (
    // biome-ignore lint/a11y/useSemanticElements: this is not part of a form, and a region would duplicate the one beside the conversation.
    <div class="questions" role="group" aria-label={t().question.questions}>
      {asks.map((ask) => {
        const mine = mineTo(ask);
        if (mine)
          return (
            <GivenAnswer
              key={ask.id}
              ask={ask}
              answer={mine}
              onChange={() => forgetGiven(keyOf(thread, ask))}
            />
          );
        const key = keyOf(thread, ask);
        if (put.keys.has(key)) return <Put key={ask.id} ask={ask} onOpen={() => answerNow(key)} />;
        return (
          <Question
            key={ask.id}
            ask={ask}
            isOnly={isOnly}
            onAnswer={(one) => give([one])}
            onLater={() => answerLater(key)}
          />
        );
      })}
      {may("run") && approvals.length > 1 && <AnswerAll asks={approvals} onAnswer={give} />}
      {answers.length > 0 && (
        <div class="row together" role="status">
          <span>{t().question.answered(answers.length, asks.length)}</span>
          <Action onClick={() => send(answers)}>{t().question.sendNow}</Action>
        </div>
      )}
    </div>
  );
}

function wordOf(decision: Answer["decision"]): string {
  const { allow, deny, wasEdited, answer } = t().question;
  return { approve: allow, deny, edit: wasEdited, respond: answer }[decision];
}

function GivenAnswer({ ask, answer, onChange }: { ask: Interrupt; answer: Answer; onChange: () => void }) {
  return (
    <p class="given row">
      <span class="title">{visible(titleOf(ask))}</span>
      <span>
        {wordOf(answer.decision)}
        {answer.message && `: ${visible(answer.message)}`}
      </span>
      <button type="button" class="quiet" onClick={onChange}>
        {t().question.change}
      </button>
    </p>
  );
}

function Put({ ask, onOpen }: { ask: Interrupt; onOpen: () => void }) {
  return (
    <p class="given row">
      <span class="title">{visible(titleOf(ask))}</span>
      <span>{t().question.later}</span>
      <button type="button" class="quiet" onClick={onOpen}>
        {t().question.answer}
      </button>
    </p>
  );
}
