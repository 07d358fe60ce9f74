// Asks how to repeat a run or a step, and opens both runs side by side.

import { useRef, useState } from "preact/hooks";
import { jsonOf } from "../arguments.ts";
import { Action, Dialog, Empty, Problem, useRead } from "../components.tsx";
import type { RunChoice } from "../outbox.ts";
import { go } from "../routes.ts";
import { askedOf, type RunInput, runAgain, runStepAgain, type StepPosition, stepOf } from "../run-again.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { CallsForm, callsIn, type WrittenArguments } from "./calls-form.tsx";
import { chosenOf, Picker, useAgents } from "./picker.tsx";

interface RunAgainProps {
  readonly thread: string;
  readonly run: string;
  /** The id of the answer of a step, or of one of the step's calls. If undefined, the whole run is repeated. */
  readonly cell?: string | undefined;
  /** True if the form opens with the arguments of the tool calls filled in. */
  readonly isOfCall?: boolean;
  readonly onClose: () => void;
}

export function RunAgain(props: RunAgainProps) {
  const { thread, run, cell } = props;
  const words = t().again;
  const { value, problem } = useRead(
    async (signal) => {
      const [again, { agent }] = await Promise.all([
        cell === undefined ? askedOf(thread, run, signal) : stepOf(thread, cell, signal),
        client.runs.get(thread, run, signal),
      ]);
      return { again, agent };
    },
    [thread, run, cell],
  );
  return (
    <Dialog title={cell === undefined ? words.title : words.stepTitle} onClose={props.onClose}>
      <Problem>{problem}</Problem>
      {!value && !problem && <Empty>{words.reading}</Empty>}
      {value && !value.again && <Empty>{words.unknown}</Empty>}
      {value?.again && <Form {...props} again={value.again} agent={value.agent} />}
    </Dialog>
  );
}

interface FormProps extends RunAgainProps {
  readonly again: RunInput | StepPosition;
  readonly agent: string;
}

function Form({ thread, run, again, agent, isOfCall, onClose }: FormProps) {
  const words = t().again;
  const asked = "message" in again ? again : undefined;
  const calls = "calls" in again ? again.calls : [];
  const asMade = calls.map(jsonOf);
  const [written, setWritten] = useState<WrittenArguments>(isOfCall ? asMade : undefined);
  const agents = useAgents();
  const [choice, setChoice] = useState<RunChoice>({});
  const [text, setText] = useState(asked?.message.text ?? "");
  const [instructions, setInstructions] = useState("");
  const [temperature, setTemperature] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const begin = async () => {
    // The field may be outside the visible area.
    form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    const how = {
      choice: { agent, ...choice },
      text,
      instructions,
      temperature: temperature === "" ? undefined : Number(temperature),
    };
    const made =
      "message" in again
        ? await runAgain(thread, again, how)
        : await runStepAgain(thread, again, how, written && callsIn(calls, written));
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
    <form ref={form} class="run-again" onSubmit={(event) => event.preventDefault()}>
      {calls.length > 0 && <CallsForm calls={calls} asMade={asMade} written={written} onWrite={setWritten} />}
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
