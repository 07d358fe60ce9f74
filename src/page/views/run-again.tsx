// Asks how a run, or one of its steps, is to be run again, and opens both side by side.

import { useState } from "preact/hooks";
import { Action, Dialog, Empty, Problem, useRead } from "../components.tsx";
import type { Choice } from "../outbox.ts";
import { go } from "../routes.ts";
import { type Asked, askedOf, runAgain, runStepAgain } from "../run-again.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { chosenOf, Picker, useAgents } from "./picker.tsx";

interface RunAgainProps {
  readonly thread: string;
  readonly run: string;
  /** The id of the answer of a step. Absent: the whole run is run again. */
  readonly step?: string | undefined;
  readonly onClose: () => void;
}

export function RunAgain(props: RunAgainProps) {
  const { thread, run, step } = props;
  const words = t().again;
  const { value, problem } = useRead(
    async (signal) => {
      const [asked, { agent }] = await Promise.all([
        step === undefined ? askedOf(thread, run, signal) : undefined,
        client.runs.get(thread, run, signal),
      ]);
      return { asked, agent };
    },
    [thread, run, step],
  );
  return (
    <Dialog title={step === undefined ? words.title : words.stepTitle} onClose={props.onClose}>
      <Problem>{problem}</Problem>
      {!value && !problem && <Empty>{words.reading}</Empty>}
      {value && !value.asked && step === undefined && <Empty>{words.unknown}</Empty>}
      {value && (value.asked || step !== undefined) && (
        <Form {...props} asked={value.asked} agent={value.agent} />
      )}
    </Dialog>
  );
}

interface FormProps extends RunAgainProps {
  /** Absent for a step: it reads what the thread has before it. */
  readonly asked: Asked | undefined;
  readonly agent: string;
}

function Form({ thread, run, step, asked, agent, onClose }: FormProps) {
  const words = t().again;
  const agents = useAgents();
  const [choice, setChoice] = useState<Choice>({});
  const [text, setText] = useState(asked?.message.text ?? "");
  const [instructions, setInstructions] = useState("");
  const [temperature, setTemperature] = useState("");
  const begin = async () => {
    const again = {
      choice: { agent, ...choice },
      text,
      instructions,
      temperature: temperature === "" ? undefined : Number(temperature),
    };
    const made = asked ? await runAgain(thread, asked, again) : await runStepAgain(thread, step ?? "", again);
    onClose();
    go({
      view: "compare",
      runs: [
        { thread, run },
        { thread: made.thread_id, run: made.id },
      ],
    });
  };
  return (
    <form class="run-again" onSubmit={(event) => event.preventDefault()}>
      <p class="row">
        <Picker
          agents={agents}
          choice={choice}
          agent={chosenOf(agents, choice.agent ?? agent)}
          onChoose={setChoice}
        />
      </p>
      {asked && (
        <label>
          {words.message}
          <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      )}
      <label>
        {words.instructions}
        <textarea
          rows={3}
          value={instructions}
          placeholder={words.instructionsHint}
          onInput={(event) => setInstructions(event.currentTarget.value)}
        />
      </label>
      <label>
        {words.temperature}
        <input
          type="number"
          min={0}
          max={2}
          step={0.1}
          value={temperature}
          placeholder={words.asAgent}
          onInput={(event) => setTemperature(event.currentTarget.value)}
        />
      </label>
      <p class="hint">{asked ? words.keeps : words.keepsStep}</p>
      <p class="row">
        <Action class="primary" onClick={begin}>
          {words.begin}
        </Action>
      </p>
    </form>
  );
}
