// The agents, as they are configured for this user's runs, and the settings that this user may change.

import { useEffect } from "preact/hooks";
import type { AgentDetails, AgentTool, PromptBlock } from "../../client/client.ts";
import { onChange } from "../changes.ts";
import { Empty, Plain, Pre, Problem, useRead, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { saveChoice } from "../outbox.ts";
import { go, hashOf } from "../routes.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { Overrides } from "./overrides.tsx";
import { PageView } from "./page-view.tsx";
import { Permissions } from "./permissions.tsx";

export const Agents = ({ agent }: { agent?: string | undefined }) =>
  agent ? <AgentView key={agent} name={agent} /> : <AgentList />;

/** Reads again when the operator has changed the agents. */
function useAgents<T>(read: (signal: AbortSignal) => Promise<T>, name: string) {
  const found = useRead(read, [name]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `reload` is a new function each time the component is drawn, with the same effect.
  useEffect(
    () =>
      onChange(({ event }) => {
        if (event === "config_changed" || event === "read_again") found.reload();
      }),
    [],
  );
  return found;
}

function AgentList() {
  const { value: agents, problem } = useAgents((signal) => client.agents.list(signal), "");
  return (
    <PageView title={t().agents.title}>
      <Problem>{problem}</Problem>
      {!agents && !problem && <Empty>{t().shared.reading}</Empty>}
      <ul class="cards">
        {agents?.map((agent) => (
          <li key={agent.name}>
            <h2>
              <a href={hashOf({ view: "agents", agent: agent.name })}>
                <Plain>{[agent.prefix, agent.name].filter(Boolean).join(" ")}</Plain>
              </a>
              {agent.default && <span class="tag">{t().agents.default}</span>}
            </h2>
            {agent.description && (
              <p>
                <Plain>{agent.description}</Plain>
              </p>
            )}
            <p class="quiet">
              <Plain>{agent.model}</Plain> · {t().agents.counts(agent.tools.length, agent.hooks.length)}
              {agent.backend && ` · ${visible(agent.backend)}`}
            </p>
          </li>
        ))}
      </ul>
    </PageView>
  );
}

function AgentView({ name }: { name: string }) {
  const { value, problem, reload } = useAgents(async (signal) => {
    const [agent, overrides, tools, prompt] = await Promise.all([
      client.agents.get(name, signal),
      client.agents.overrides(name, signal),
      client.agents.tools(name, signal),
      mayManage() ? client.agents.prompt(name, signal) : undefined,
    ]);
    return { agent, overrides, tools, prompt };
  }, name);
  const words = t().agents;
  return (
    <PageView title={visible(name)}>
      <p class="crumb">
        <a href={hashOf({ view: "agents" })}>{words.all}</a>
      </p>
      <Problem>{problem}</Problem>
      {!value && !problem && <Empty>{t().shared.reading}</Empty>}
      {value && (
        <div class="sections">
          <Facts agent={value.agent} />
          <Prompt blocks={value.prompt} />
          <OfferedTools tools={value.tools} />
          <Names title={words.hooks} names={value.agent.hooks}>
            {words.noHooks}
          </Names>
          {may("run") && <Overrides agent={value.agent} overrides={value.overrides} onChanged={reload} />}
          <Permissions agent={name} />
        </div>
      )}
    </PageView>
  );
}

function Facts({ agent }: { agent: AgentDetails }) {
  const words = t().agents;
  return (
    <section>
      {agent.description && (
        <p>
          <Plain>{agent.description}</Plain>
        </p>
      )}
      {may("run") && (
        <button type="button" class="primary" onClick={() => talkTo(agent.name)}>
          {words.talk}
        </button>
      )}
      <dl class="facts">
        <dt>{words.model}</dt>
        <dd>
          <Plain>{agent.model}</Plain>
        </dd>
        <dt>{words.window}</dt>
        <dd>{words.tokens(number(agent.context_window))}</dd>
        <dt>{words.calls}</dt>
        <dd>{words.atMost(number(agent.max_iterations))}</dd>
        <dt>{words.backend}</dt>
        <dd>{agent.backend ? <Plain>{agent.backend}</Plain> : words.noBackend}</dd>
      </dl>
    </section>
  );
}

/** Opens a new conversation with this agent selected. */
function talkTo(agent: string): void {
  saveChoice(undefined, { agent });
  go({ view: "new" });
}

const mayManage = () => may("admin") || may("operator");

/** Undefined if this user may not read the prompt. */
function Prompt({ blocks }: { blocks: readonly PromptBlock[] | undefined }) {
  const words = t().agents;
  return (
    <section>
      <h2>{words.prompt}</h2>
      {!blocks && <Empty>{words.promptHidden}</Empty>}
      {blocks?.length === 0 && <Empty>{words.noPrompt}</Empty>}
      <div class="changes">
        {blocks?.map(({ id, text }) => (
          <details class="change" key={id} open={blocks.length === 1}>
            <summary>
              <Plain>{id}</Plain>
            </summary>
            <Pre>{visible(text)}</Pre>
          </details>
        ))}
      </div>
    </section>
  );
}

function OfferedTools({ tools }: { tools: readonly AgentTool[] }) {
  const words = t().agents;
  return (
    <section>
      <h2>{words.tools}</h2>
      {tools.length === 0 && <Empty>{words.noTools}</Empty>}
      <div class="changes">
        {tools.map((tool) => (
          <details class="change" key={tool.name}>
            <summary>
              <Plain>{tool.name}</Plain> <span class="quiet">{visible(firstSentence(tool.description))}</span>
              {tool.read_only && <span class="tag">{words.readOnly}</span>}
            </summary>
            <Pre>{visible(tool.description)}</Pre>
            <h3>{words.parameters}</h3>
            <Pre>{visible(JSON.stringify(tool.parameters, null, 2))}</Pre>
          </details>
        ))}
      </div>
    </section>
  );
}

const LONGEST = 120;

/** Returns the text of the collapsed line. The expanded section shows the whole text. */
function firstSentence(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const sentence = line.split(/(?<=[.!?]) /, 1)[0] ?? line;
  return sentence.length > LONGEST ? `${sentence.slice(0, LONGEST)}…` : sentence;
}

const Names = ({ title, names, children }: { title: string; names: readonly string[]; children: string }) => (
  <section>
    <h2>{title}</h2>
    {names.length === 0 && <Empty>{children}</Empty>}
    <ul class="names">
      {names.map((name) => (
        <li key={name} class="tag">
          <Plain>{name}</Plain>
        </li>
      ))}
    </ul>
  </section>
);
