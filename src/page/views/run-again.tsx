// Asks how a run is to be run again, and opens both side by side.

import { useState } from "preact/hooks";
import { Action, Dialog, Empty, Problem, useRead } from "../components.tsx";
import type { Choice } from "../outbox.ts";
import { go } from "../routes.ts";
import { type Asked, askedOf, runAgain } from "../run-again.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { chosenOf, Picker, useAgents } from "./picker.tsx";

interface RunAgainProps {
  readonly thread: string;
  readonly run: string;
  readonly onClose: () => void;
}

export function RunAgain(props: RunAgainProps) {
  const { thread, run } = props;
  const words = t().again;
  const { value, problem } = useRead(
    async (signal) => {
      const [asked, { agent }] = await Promise.all([
        askedOf(thread, run, signal),
        client.runs.get(thread, run, signal),
      ]);
      return { asked, agent };
    },
    [thread, run],
  );
  return (
    <Dialog title={words.title} onClose={props.onClose}>
      <Problem>{problem}</Problem>
      {!value && !problem && <Empty>{words.reading}</Empty>}
      {value && !value.asked && <Empty>{words.unknown}</Empty>}
      {value?.asked && <Form {...props} asked={value.asked} agent={value.agent} />}
    </Dialog>
  );
}

function Form({ thread, run, asked, agent, onClose }: RunAgainProps & { asked: Asked; agent: string }) {
  const words = t().again;
  const agents = useAgents();
  const [choice, setChoice] = useState<Choice>({});
  const [text, setText] = useState(asked.message.text);
  const [instructions, setInstructions] = useState("");
  const [temperature, setTemperature] = useState("");
  const begin = async () => {
    const made = await runAgain(thread, asked, {
      choice: { agent, ...choice },
      text,
      instructions,
      temperature: temperature === "" ? undefined : Number(temperature),
    });
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
      <label>
        {words.message}
        <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
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
      <p class="hint">{words.keeps}</p>
      <p class="row">
        <Action class="primary" onClick={begin}>
          {words.begin}
        </Action>
      </p>
    </form>
  );
}
