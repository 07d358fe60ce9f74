// The choice of agent and model for the next answer.

import { useState } from "preact/hooks";
import type { Agent } from "../../client/client.ts";
import { useRead, visible } from "../components.tsx";
import type { RunChoice } from "../outbox.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";

export const useAgents = (): readonly Agent[] =>
  useRead((signal) => client.agents.list(signal), []).value ?? [];

/** Returns the agent with this name, or the default agent. */
export const chosenOf = (agents: readonly Agent[], name: string | undefined): Agent | undefined =>
  agents.find((each) => each.name === name) ?? agents.find((each) => each.default);

/** Returns whether the agent's model is a script. */
export const isDemo = ({ model }: Pick<Agent, "model">): boolean => model.startsWith("scripted:");

export interface PickerProps {
  readonly agents: readonly Agent[];
  readonly choice: RunChoice;
  /** The agent of the next answer. */
  readonly agent: Agent | undefined;
  readonly onChoose: (choice: RunChoice) => void;
}

const OTHER = "\0other";

export function Picker({ agents, choice, agent: chosen, onChoose }: PickerProps) {
  if (!chosen) return null;
  return (
    <>
      {agents.length > 1 && (
        <select
          class="pick"
          aria-label={t().picker.agent}
          title={chosen.description}
          value={chosen.name}
          onChange={(event) => onChoose({ agent: event.currentTarget.value })}
        >
          {agents.map(({ name, prefix }) => (
            <option key={name} value={name}>
              {visible(prefix ? `${prefix} ${name}` : name)}
            </option>
          ))}
        </select>
      )}
      <ModelPicker
        key={chosen.name}
        agent={chosen}
        model={choice.model}
        onChoose={(model) => onChoose({ ...choice, model })}
      />
    </>
  );
}

function ModelPicker(props: {
  agent: Agent;
  model: string | undefined;
  onChoose: (model: string | undefined) => void;
}) {
  const { agent, model, onChoose } = props;
  const [isOther, setOther] = useState(false);
  const { value: details } = useRead((signal) => client.agents.get(agent.name, signal), [agent.name]);
  const { any = false, names = [], patterns = [] } = details?.choices.models ?? {};
  const mayNameOthers = any || patterns.length > 0;
  const others = new Set([...names, ...(model ? [model] : [])]);
  others.delete(agent.model);
  if (others.size === 0 && !mayNameOthers) return <span class="pick fixed">{visible(agent.model)}</span>;
  if (isOther)
    return (
      <input
        class="pick"
        aria-label={t().picker.model}
        placeholder="provider:model"
        value={model ?? ""}
        onChange={(event) => {
          const named = event.currentTarget.value.trim();
          setOther(false);
          onChoose(named || undefined);
        }}
      />
    );
  return (
    <select
      class="pick"
      aria-label={t().picker.model}
      value={model ?? ""}
      onChange={(event) => {
        const named = event.currentTarget.value;
        if (named === OTHER) setOther(true);
        else onChoose(named || undefined);
      }}
    >
      <option value="">{visible(agent.model)}</option>
      {[...others].map((name) => (
        <option key={name} value={name}>
          {visible(name)}
        </option>
      ))}
      {mayNameOthers && <option value={OTHER}>{t().picker.other}</option>}
    </select>
  );
}
