// The properties of the body of a question.

import { useContext } from "preact/hooks";
import type { Answer, Interrupt } from "../../client/client.ts";
import { keyOf } from "../questions.ts";
import { AskedIn } from "./asked.tsx";

export interface BodyProps {
  readonly ask: Interrupt;
  readonly isOff: boolean;
  readonly isOnly: boolean;
  readonly answer: (given: Omit<Answer, "id">) => Promise<void>;
}

/** The key under which the draft of an answer is stored. */
export const useDraft = (ask: Interrupt) => keyOf(useContext(AskedIn) ?? "", ask);
