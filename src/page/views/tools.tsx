// The tenant's registered tools, and the user's permission rules, webhooks and connections.

import { useState } from "preact/hooks";
import type { HttpTool } from "../../client/client.ts";
import { Empty, Plain, Problem, Time, useRead, visible } from "../components.tsx";
import { lazy } from "../lazy.tsx";
import { number } from "../numbers.ts";
import { go } from "../routes.ts";
import { client, may } from "../session.ts";
import { Tabs } from "../tabs.tsx";
import { connectionTexts } from "../texts/connections.ts";
import { toolTexts } from "../texts/tools.ts";
import { t } from "../texts.ts";
import { Confirm } from "./confirm.tsx";
import { ownConnections } from "./connection-methods.ts";
import { PageView } from "./page-view.tsx";
import { Permissions, type RuleScope } from "./permissions.tsx";
import { ChangeTool } from "./tool-change.tsx";
import { NewTool } from "./tool-form.tsx";
import { TryTool } from "./tool-try.tsx";
import { ownWebhooks } from "./webhook-methods.ts";
import { Webhooks } from "./webhooks.tsx";

const Connections = lazy(async () => (await import("./connections.tsx")).Connections);

export function Tools({ tab = "tools" }: { tab?: string | undefined }) {
  const { title } = toolTexts();
  return (
    <PageView title={title}>
      <Tabs
        label={title}
        current={tab}
        onChange={(name) => go({ view: "tools", tab: name })}
        tabs={{
          tools: { title, body: () => <ToolsAndRules /> },
          connections: {
            title: connectionTexts().title,
            body: () => <Connections methods={ownConnections()} />,
          },
        }}
      />
    </PageView>
  );
}

const ToolsAndRules = () => (
  <div class="sections">
    <TenantTools />
    <Remembered />
    <Webhooks methods={ownWebhooks()} />
  </div>
);

/** The maximum number of tools to show. */
const MAX_TOOLS = 500;

async function allTools(signal: AbortSignal): Promise<{ tools: HttpTool[]; isWhole: boolean }> {
  const tools: HttpTool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.tools.list({ limit: 100, cursor }, signal);
    tools.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && tools.length < MAX_TOOLS);
  return { tools, isWhole: cursor === undefined };
}

function TenantTools() {
  const { value, problem, reload } = useRead(allTools, []);
  const words = toolTexts();
  return (
    <section aria-label={words.registered}>
      <h2>{words.registered}</h2>
      <p class="note">{words.about}</p>
      <Problem>{problem}</Problem>
      {value?.tools.length === 0 && <Empty>{may("tools") ? words.empty : words.none}</Empty>}
      <div class="changes">
        {value?.tools.map((tool) => (
          <Tool key={tool.name} tool={tool} onChanged={reload} />
        ))}
      </div>
      {value && !value.isWhole && <Empty>{words.more(number(value.tools.length))}</Empty>}
      {may("tools") && <NewTool names={value?.tools.map(({ name }) => name) ?? []} onRegistered={reload} />}
    </section>
  );
}

function Tool({ tool, onChanged }: { tool: HttpTool; onChanged: () => void }) {
  const { annotations: about } = tool;
  const words = toolTexts();
  const traits = [
    about.category,
    about.read_only && words.traits.reads,
    about.destructive && words.traits.destructive,
    about.requires_permission && words.traits.asks,
    tool.idempotent && words.traits.repeatable,
  ].filter((trait) => typeof trait === "string");
  return (
    <details class="change">
      <summary>
        <Plain>{tool.name}</Plain> <span class="quiet">{visible(tool.description)}</span>
      </summary>
      <dl class="facts">
        <dt>{words.calledAt}</dt>
        <dd>
          <Plain>{tool.callback_url}</Plain>
        </dd>
        <dt>{words.forAgents}</dt>
        <dd>
          <Plain>{tool.agents.join(", ")}</Plain>
        </dd>
        <dt>{words.headers}</dt>
        <dd>
          {tool.header_names.length > 0 ? <Plain>{tool.header_names.join(", ")}</Plain> : words.noHeaders}
        </dd>
        <dt>{words.limit}</dt>
        <dd>{number(tool.timeout_ms / 1000)} s</dd>
        {traits.length > 0 && (
          <>
            <dt>{words.traitsTitle}</dt>
            <dd>{traits.join(", ")}</dd>
          </>
        )}
        <dt>{words.since}</dt>
        <dd>
          <Time at={tool.created_at} />
        </dd>
        <dt>{words.arguments}</dt>
        <dd>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
          <pre tabIndex={0}>
            <Plain>{JSON.stringify(tool.parameters, null, 2)}</Plain>
          </pre>
        </dd>
      </dl>
      {may("tools") && <TryTool key={`try ${JSON.stringify(tool.parameters)}`} tool={tool} />}
      {may("tools") && <ChangeTool tool={tool} onChanged={onChanged} />}
      {may("tools") && (
        <Confirm
          class="danger"
          question={words.deleteQuestion}
          onConfirm={async () => {
            await client.tools.delete(tool.name);
            onChanged();
          }}
        >
          {t().shared.delete}
        </Confirm>
      )}
    </details>
  );
}

/** The number of recent threads to offer. Any other thread can be opened by its own URL. */
const OFFERED = 50;

function Remembered() {
  const { value, problem } = useRead(async (signal) => {
    const [agents, threads] = await Promise.all([
      client.agents.list(signal),
      client.threads.list({ limit: OFFERED }, signal),
    ]);
    return { agents, threads: threads.items };
  }, []);
  const [chosen, setChosen] = useState<string>();
  if (!value) return <Problem>{problem}</Problem>;
  const first = value.agents.find((agent) => agent.default) ?? value.agents[0];
  const current = chosen ?? (first && `agent ${first.name}`);
  const place = current === undefined ? undefined : placeOf(current);
  const words = toolTexts();
  return (
    <section>
      <h2>{words.permissions}</h2>
      <label class="pick">
        {words.rulesOf}
        <select value={current} onChange={(event) => setChosen(event.currentTarget.value)}>
          <optgroup label={words.agents}>
            {value.agents.map(({ name }) => (
              <option key={name} value={`agent ${name}`}>
                {visible(name)}
              </option>
            ))}
          </optgroup>
          <optgroup label={words.threads}>
            {value.threads.map(({ id, title }) => (
              <option key={id} value={`thread ${id}`}>
                {visible(title ?? id)}
              </option>
            ))}
          </optgroup>
        </select>
      </label>
      {place && <Permissions key={current} {...place} />}
    </section>
  );
}

function placeOf(chosen: string): RuleScope {
  const [kind, ...name] = chosen.split(" ");
  return kind === "agent" ? { agent: name.join(" ") } : { thread: name.join(" ") };
}
