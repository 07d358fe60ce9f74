// Shows a tool call that is waiting for the user's answer, either in its thread or in the inbox.

import { useState } from "preact/hooks";
import { type Answer, type Interrupt, ProblemError } from "../../client/client.ts";
import { Plain, Problem } from "../components.tsx";
import { may, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { Countdown } from "./countdown.tsx";
import { Exact } from "./exact-text.tsx";
import { Approval } from "./question-approval.tsx";
import { Choice } from "./question-choice.tsx";
import { Connect } from "./question-connect.tsx";
import { ClientTool } from "./question-tool.tsx";

export interface QuestionProps {
  readonly ask: Interrupt;
  /** True if this is the only question, so that its keys work everywhere on the page. */
  readonly isOnly?: boolean;
  /** Rejects with the server's error. */
  readonly onAnswer: (answer: Answer) => Promise<void>;
  /** If undefined, there is no "Later" button. */
  readonly onLater?: (() => void) | undefined;
}

export function Question({ ask, isOnly = false, onAnswer, onLater }: QuestionProps) {
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isClosed, setClosed] = useState(false);
  const answer = async (given: Omit<Answer, "id">) => {
    setBusy(true);
    setProblem("");
    try {
      await onAnswer({ id: ask.id, ...given });
    } catch (error) {
      const isOver = error instanceof ProblemError && error.code === "interrupt_closed";
      setClosed(isOver);
      setProblem(isOver ? t().question.closed : messageOf(error));
    }
    setBusy(false);
  };
  const Body = BODIES[ask.kind];
  return (
    <article class="question" aria-label={titleOf(ask)}>
      <header>
        <h3>
          <Title {...ask} />
        </h3>
        {ask.expires_at && <Countdown at={ask.expires_at} />}
        {onLater && (
          <button type="button" class="quiet" onClick={onLater}>
            {t().question.later}
          </button>
        )}
      </header>
      {ask.asked_by && (
        <p class="asked-by">
          {t().question.askedBy} <Plain>{ask.asked_by.name}</Plain>
        </p>
      )}
      <Body ask={ask} isOnly={isOnly} isOff={isBusy || isClosed || !may("run")} answer={answer} />
      <Problem>{problem}</Problem>
    </article>
  );
}

/** Returns a one-line title for lists and screen readers. */
export function titleOf({ kind, name, prompt }: Pick<Interrupt, "kind" | "name" | "prompt">): string {
  const words = t().question;
  if (kind === "approval") return words.title(name);
  return kind === "tool" ? words.waitsFor(name) : prompt;
}

function Title({ kind, name, prompt }: Interrupt) {
  const tool = (
    <code>
      <Plain>{name}</Plain>
    </code>
  );
  const { allowTool, frontEnd } = t().question;
  if (kind === "approval")
    return (
      <>
        {allowTool.before}
        {tool}
        {allowTool.after}
      </>
    );
  if (kind === "tool")
    return (
      <>
        {frontEnd} {tool}
      </>
    );
  return <Exact text={prompt} />;
}

const BODIES = { approval: Approval, question: Choice, tool: ClientTool, connect: Connect } as const;
