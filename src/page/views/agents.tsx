// The agents: what each is made of, as this user's runs have it, and what this user may change of it.

import { useEffect } from "preact/hooks";
import type { AgentDetails } from "../../client/client.ts";
import { onChange } from "../changes.ts";
import { Empty, Plain, Problem, useRead, visible } from "../components.tsx";
import { number } from "../numbers.ts";
import { hashOf } from "../routes.ts";
import { client, may } from "../session.ts";
import { Overrides } from "./overrides.tsx";
import { PageView } from "./page-view.tsx";
import { Permissions } from "./permissions.tsx";

export const Agents = ({ agent }: { agent?: string | undefined }) =>
  agent ? <AgentView key={agent} name={agent} /> : <AgentList />;

/** Reads again when the operator has changed the agents. */
function useAgents<T>(read: (signal: AbortSignal) => Promise<T>, name: string) {
  const found = useRead(read, [name]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `reload` is another function at each drawing, and does the same.
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
    <PageView title="Agents">
      <Problem>{problem}</Problem>
      {!agents && !problem && <Empty>Reading…</Empty>}
      <ul class="cards">
        {agents?.map((agent) => (
          <li key={agent.name}>
            <h2>
              <a href={hashOf({ view: "agents", agent: agent.name })}>
                <Plain>{[agent.prefix, agent.name].filter(Boolean).join(" ")}</Plain>
              </a>
              {agent.default && <span class="tag">default</span>}
            </h2>
            {agent.description && (
              <p>
                <Plain>{agent.description}</Plain>
              </p>
            )}
            <p class="quiet">
              <Plain>{agent.model}</Plain> · {counted(agent.tools.length, "tool")} ·{" "}
              {counted(agent.hooks.length, "hook")}
              {agent.backend && ` · ${visible(agent.backend)}`}
            </p>
          </li>
        ))}
      </ul>
    </PageView>
  );
}

const counted = (count: number, name: string) => `${count} ${name}${count === 1 ? "" : "s"}`;

function AgentView({ name }: { name: string }) {
  const { value, problem, reload } = useAgents(async (signal) => {
    const [agent, overrides] = await Promise.all([
      client.agents.get(name, signal),
      client.agents.overrides(name, signal),
    ]);
    return { agent, overrides };
  }, name);
  return (
    <PageView title={visible(name)}>
      <p class="crumb">
        <a href={hashOf({ view: "agents" })}>All agents</a>
      </p>
      <Problem>{problem}</Problem>
      {!value && !problem && <Empty>Reading…</Empty>}
      {value && (
        <div class="sections">
          <Facts agent={value.agent} />
          <Names title="Tools" names={value.agent.tools}>
            Its runs have no tools.
          </Names>
          <Names title="Hooks, outermost first" names={value.agent.hooks}>
            It has no hooks.
          </Names>
          {may("run") && <Overrides agent={value.agent} overrides={value.overrides} onChanged={reload} />}
          <Permissions agent={name} />
        </div>
      )}
    </PageView>
  );
}

function Facts({ agent }: { agent: AgentDetails }) {
  return (
    <section>
      {agent.description && (
        <p>
          <Plain>{agent.description}</Plain>
        </p>
      )}
      <dl class="facts">
        <dt>Model</dt>
        <dd>
          <Plain>{agent.model}</Plain>
        </dd>
        <dt>Context window</dt>
        <dd>{number(agent.context_window)} tokens</dd>
        <dt>Model calls in a run</dt>
        <dd>at most {number(agent.max_iterations)}</dd>
        <dt>Backend</dt>
        <dd>{agent.backend ? <Plain>{agent.backend}</Plain> : "none: it has no files and no commands"}</dd>
      </dl>
    </section>
  );
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
